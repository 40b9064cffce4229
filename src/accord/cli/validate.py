"""``accord validate``: do anybody's predictions agree with what was observed?"""

from pathlib import Path
from typing import Any

import click

from accord.cli import options, terminal


@click.command(short_help="Check any model's predictions against a rule.")
@click.argument("predictions", type=options.TABLE)
@options.column("--truth", required=True, about="The observed values.")
@options.column("--mean", required=True, about="The predicted values.")
@options.column("--std", about="Their standard deviations.")
@options.column("--lower", about="Lower ends of intervals, judged instead of those of --std.")
@options.column("--upper", about="Upper ends of intervals.")
@options.share_of(
    "--coverage", default=0.95, about="Share of the values that the intervals should contain."
)
@click.option(
    "--rule",
    required=True,
    metavar="RULE",
    help='When model and data agree: "within 0.5", "within 5%", "at least", "inside 0 10", '
    '"exact"; joined by "and" and "or".',
)
@options.report()
@options.share_of(
    "--fail-below",
    "required",
    about="The agreement that is required; below it, the exit code is 1.",
)
@options.dialect
@options.threads
@options.force
@options.common
def validate(
    predictions: Path,
    report: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Do predictions agree with observed values by a rule, and can their uncertainty be believed?

    PREDICTIONS is a CSV or Parquet file from any model, or - for standard input.

    \b
    Examples:
      accord validate rig.csv --truth measured --mean model --std sigma --rule "within 0.5"
      accord validate rig.csv --truth y --mean m --lower lo --upper hi --rule "within 5%"
      accord validate rig.csv --truth y --mean m --rule "within 1" --fail-below 90% || exit 1
    """
    wanted = [] if report is None else terminal.with_document(report)
    terminal.check_files([predictions], wanted, force=force)
    file = terminal.file_of(predictions, settings)
    terminal.check_columns(
        file, [(role, settings[role]) for role in ("truth", "mean", "std", "lower", "upper")]
    )

    from accord._files import atomic_outputs
    from accord.workflows import validate_predictions

    result = validate_predictions(file, **settings)
    if wanted:
        from accord.report import validate_report

        with atomic_outputs(wanted, inputs=[predictions], force=force) as places:
            terminal.write_report(places, validate_report(result), result.to_json())
    if as_json:
        terminal.print_json(result.to_json())
        raise click.exceptions.Exit(1 if result.failed else 0)
    terminal.notes(result.warnings, quiet=quiet)
    terminal.print_verdict(result.verdict)
    if result.belief is not None:
        terminal.print_verdict(result.belief)
    terminal.wrote(wanted)
    raise click.exceptions.Exit(1 if result.failed else 0)
