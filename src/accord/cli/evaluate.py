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
@click.option(
    "--coverage",
    type=options.share,
    metavar="SHARE",
    help="Share of the values that intervals should contain.  [default: the model's]",
)
@options.by_name
@options.encoding
@options.threads
@options.force
@options.common
def evaluate(
    model: Path,
    table: Path,
    report: Path,
    no_report: bool,
    coverage: float | None,
    by_name: bool,
    encoding: str,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare what MODEL predicts for TABLE with the target column of TABLE.

    \b
    Example:
      accord evaluate model.skops sold-in-june.csv --report june.html
    """
    wanted = [] if no_report else [report]
    terminal.check_paths([model, table], wanted, force=force)

    from accord.report import evaluate_report
    from accord.tables import atomic_output, check_output
    from accord.workflows import evaluate_table

    for path in wanted:
        check_output(path, force=force)
    with terminal.progress(quiet=quiet) as progress:
        result = evaluate_table(
            model, table, coverage=coverage, by_name=by_name, encoding=encoding, progress=progress
        )
    for path in wanted:
        with atomic_output(path, force=force) as part:
            part.write_text(evaluate_report(result), encoding="utf-8")
    if as_json:
        terminal.print_json(result.to_json())
        return
    terminal.notes(result.warnings, quiet=quiet)
    terminal.print_verdict(result.verdict)
    for sentence in result.drift.sentences():
        click.echo(sentence)
    if wanted:
        click.echo(f"Wrote {report}.")
