"""``accord compare``: all methods on the same splits of a table."""

from pathlib import Path
from typing import Any

import click

from accord.cli import options, terminal


@click.command(short_help="Compare all methods on the same splits of a table.")
@click.argument("table", type=options.TABLE)
@options.target
@options.count(
    "--splits",
    default=3,
    about="Random splits, and as many that hold out the most unusual rows.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Only this method: a name that 'accord fit --method' takes, ngboost or catboost; may be "
    "repeated.  [default: all]",
)
@options.group
@options.time
@options.ignore
@options.use
@options.category
@options.report("comparison.html")
@options.file("--output", "-o", about="Also write the scores, .csv or .parquet.")
@options.coverage
@options.cluster
@options.seed
@options.dialect
@options.threads
@options.force
@options.common
def compare(
    table: Path,
    splits: int,
    methods: tuple[str, ...],
    report: Path,
    no_report: bool,
    output: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    scheduler: str | None,
    workers: int | None,
    **settings: Any,
) -> None:
    """Train every method of this library (and NGBoost and CatBoost, if installed) on TABLE.

    All see the same rows: random splits, and splits that hold out the most unusual rows. Random
    splits keep together what 'accord fit' does: rows of a --group or of a stretch of --time, and
    copies of a row. A method that fails gets a row that says so, and the exit code is then 1.

    \b
    Examples:
      accord compare houses.csv --target price --splits 5 -o scores.csv
      accord compare patients.csv --target dose --group patient
    """
    pages = [] if no_report else terminal.with_document(report)
    wanted = pages + ([output] if output is not None else [])
    terminal.check_files([table], wanted, force=force)
    file = terminal.file_of(table, settings)
    terminal.check_roles(file, settings)

    from accord._files import atomic_outputs
    from accord.report import compare_report
    from accord.tables import refuse_unknown_suffix
    from accord.work import connected
    from accord.workflows import KINDS, compare_methods

    if output is not None:
        refuse_unknown_suffix(output)
    with (
        connected(scheduler=scheduler, workers=workers) as client,
        terminal.progress(quiet=quiet) as progress,
    ):
        result = compare_methods(
            file,
            n_splits=splits,
            methods=methods or None,
            progress=progress,
            client=client,
            **settings,
        )
    with atomic_outputs(wanted, inputs=[table], force=force) as places:
        if pages:
            terminal.write_report(places, compare_report(result), result.to_json())
        if output is not None:
            result.write_scores(places[-1])
    if as_json:
        terminal.print_json(result.to_json())
        raise click.exceptions.Exit(1 if result.failures else 0)
    terminal.notes(result.notes, quiet=quiet)
    for kind in KINDS:
        terminal.say(terminal.table(*result.table(kind)) + "\n")
    terminal.say(result.conclusion())
    if not quiet:
        lines = (f"{name}: {about}." for name, about in result.about.items())
        terminal.say("\nHow each was trained. " + " ".join(lines))
    terminal.wrote(wanted)
    raise click.exceptions.Exit(1 if result.failures else 0)
