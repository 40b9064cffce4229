"""``accord evaluate``: does a model hold on new labelled data, and have the data drifted?"""

from pathlib import Path

import click

from accord.cli import options, terminal


@click.command(short_help="Check a saved model on new labelled rows, and look for drift.")
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.TABLE)
@click.option(
    "--report",
    type=options.FILE,
    default=Path("evaluation.html"),
    show_default=True,
    help="The report, one HTML file.",
)
@click.option("--no-report", is_flag=True, help="Write no report.")
@options.coverage
@options.by_name
@options.encoding
@options.force
@options.common
def evaluate(
    model: Path,
    table: Path,
    report: Path,
    no_report: bool,
    coverage: float,
    by_name: bool,
    encoding: str,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare what MODEL predicts for TABLE with the target column that TABLE holds.

    \b
    Example:
      accord evaluate model.skops sold-in-june.csv --report june.html
    """
    from accord.report import evaluate_report
    from accord.tables import atomic_output, check_output
    from accord.workflows import evaluate_table

    if not no_report:
        check_output(report, force=force)
    with terminal.progress(quiet=quiet) as progress:
        result = evaluate_table(
            model, table, coverage=coverage, by_name=by_name, encoding=encoding, progress=progress
        )
    if not no_report:
        with atomic_output(report, force=force) as part:
            part.write_text(evaluate_report(result), encoding="utf-8")
    if as_json:
        terminal.print_json(result.to_json())
        return
    terminal.notes(result.warnings, quiet=quiet)
    click.echo(terminal.verdict(result.verdict.level, result.verdict.headline))
    click.echo(result.verdict.summary)
    for sentence in result.drift.sentences():
        click.echo(sentence)
    if not no_report:
        click.echo(f"Wrote {report}.")
