"""``accord fit``: from a table to a model file and a report."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from accord.cli import options, terminal


@click.command(short_help="Train a model on a table; write the model and a report.")
@click.argument("table", type=options.TABLE)
@click.option(
    "--target",
    "-t",
    required=True,
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="The column to predict.",
)
@click.option(
    "--output",
    "-o",
    type=options.FILE,
    default=Path("model.skops"),
    show_default=True,
    help="The model file.",
)
@click.option(
    "--report",
    type=options.FILE,
    default=Path("report.html"),
    show_default=True,
    help="The report, one HTML file.",
)
@click.option("--no-report", is_flag=True, help="Write no report.")
@options.coverage
@click.option(
    "--tolerance",
    default="local",
    show_default=True,
    metavar="EPS",
    help="Within which model and data agree: 0.5 (target units), 1% (of the target's range), or "
    "local, robust, validate, learn (chosen for you).",
)
@click.option(
    "--tolerance-column",
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="A tolerance for each row, in target units (an instrument's, a rounding).",
)
@click.option(
    "--lower-column",
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="Censored rows: the target is at least this.",
)
@click.option(
    "--upper-column",
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="Censored rows: the target is at most this.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="A column that shall not be used; may be repeated.",
)
@click.option(
    "--recalibrate",
    type=click.Choice(["conformal", "variance", "isotonic", "none"]),
    default="conformal",
    show_default=True,
    help="How intervals are adjusted on held-out rows.",
)
@click.option(
    "--members",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Networks in the ensemble.",
)
@click.option(
    "--time-budget",
    type=options.duration,
    metavar="TIME",
    help="Spend about this long, 90s, 5m or 1h: settings are made to fit.",
)
@options.seed
@options.encoding
@options.force
@options.common
def fit(
    table: Path,
    output: Path,
    report: Path,
    no_report: bool,
    as_json: bool,
    quiet: bool,
    force: bool,
    **settings: Any,
) -> None:
    """Train a model on TABLE (CSV or Parquet) and find out how far it can be trusted.

    Column types, missing values, categories and dates are taken care of. Rows are held out, at
    random and the most unusual ones, for honest figures; the model that is saved has then learnt
    from all rows.

    \b
    Examples:
      accord fit houses.csv --target price
      accord fit houses.csv --target price --tolerance 1% --ignore agent
      accord fit tests.parquet --target life --lower-column censored_at
      accord fit big.csv --target y --time-budget 5m --json > result.json
    """
    from accord.report import fit_report
    from accord.tables import atomic_output, check_output
    from accord.workflows import fit_table

    wanted = [output] if no_report else [output, report]
    for path in wanted:
        check_output(path, force=force)
    with terminal.progress(quiet=quiet) as progress:
        result = fit_table(table, progress=progress, **settings)
    with ExitStack() as files:
        parts = [files.enter_context(atomic_output(path, force=force)) for path in wanted]
        result.model.save(parts[0])
        if not no_report:
            parts[1].write_text(fit_report(result), encoding="utf-8")
    if as_json:
        terminal.print_json(result.to_json() | {"outputs": [str(path) for path in wanted]})
        return
    terminal.notes(result.notes, quiet=quiet)
    click.echo(terminal.verdict(result.verdict.level, result.verdict.headline))
    click.echo(result.verdict.summary)
    for remark in result.verdict.remarks:
        click.echo(remark)
    click.echo(f"Wrote {' and '.join(map(str, wanted))}.")
