"""``accord compare``: all methods on the same splits of a table."""

from pathlib import Path

import click

from accord.cli import options, terminal


@click.command(short_help="Compare all methods on the same splits of a table.")
@click.argument("table", type=options.TABLE)
@options.target
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Random splits, and as many outlier splits.",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    help="Only this method; may be repeated.  [default: all]",
)
@options.ignore
@click.option(
    "--report",
    type=options.FILE,
    default=Path("comparison.html"),
    show_default=True,
    help="The report, one HTML file.",
)
@click.option("--no-report", is_flag=True, help="Write no report.")
@click.option("--output", "-o", type=options.FILE, help="Also write the scores, .csv or .parquet.")
@options.coverage
@options.seed
@options.encoding
@options.threads
@options.force
@options.common
def compare(
    table: Path,
    target: str,
    splits: int,
    methods: tuple[str, ...],
    ignore: tuple[str, ...],
    report: Path,
    no_report: bool,
    output: Path | None,
    coverage: float,
    seed: int,
    encoding: str,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Train every method of this library (and NGBoost and CatBoost, if installed) on TABLE.

    All see the same rows: random splits, and splits that hold out the most unusual rows. A method
    that fails gets a row that says so, and the exit code is then 1.

    \b
    Example:
      accord compare houses.csv --target price --splits 5 -o scores.csv
    """
    from contextlib import ExitStack

    wanted = ([] if no_report else [report]) + ([output] if output is not None else [])
    terminal.check_paths([table], wanted, force=force)

    from accord.report import compare_report
    from accord.tables import atomic_output, check_output, refuse_unknown_suffix
    from accord.workflows import KINDS, compare_methods

    for path in wanted:
        check_output(path, force=force)
    if output is not None:
        refuse_unknown_suffix(output)
    with terminal.progress(quiet=quiet) as progress:
        result = compare_methods(
            table,
            target=target,
            n_splits=splits,
            methods=methods or None,
            ignore=ignore,
            coverage=coverage,
            seed=seed,
            encoding=encoding,
            progress=progress,
        )
    with ExitStack() as files:
        parts = {path: files.enter_context(atomic_output(path, force=force)) for path in wanted}
        if not no_report:
            parts[report].write_text(compare_report(result), encoding="utf-8")
        if output is not None:
            result.write_scores(parts[output])
    if as_json:
        terminal.print_json(result.to_json())
        raise click.exceptions.Exit(1 if result.failures else 0)
    terminal.notes(result.notes, quiet=quiet)
    for kind in KINDS:
        click.echo(terminal.table(*result.table(kind)) + "\n")
    click.echo(result.conclusion())
    if wanted:
        click.echo(f"Wrote {' and '.join(map(str, wanted))}.")
    raise click.exceptions.Exit(1 if result.failures else 0)
