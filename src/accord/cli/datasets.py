"""``accord datasets``: the datasets of the literature that the library knows."""

from pathlib import Path

import click

from accord.cli import options, terminal


@click.command(short_help="List the known datasets, or write one as a table.")
@click.argument("name", required=False)
@options.file("--output", "-o", about="Write dataset NAME to a .csv or .parquet file.")
@options.force
@options.common
def datasets(
    name: str | None, output: Path | None, force: bool, quiet: bool, as_json: bool
) -> None:
    """Without NAME, list the datasets. With NAME, describe one; with -o, write it as a table.

    Datasets that are not built in are downloaded once, or taken from the folder that ACCORD_DATA
    names.

    \b
    Examples:
      accord datasets
      accord datasets boston -o boston.csv
    """
    from accord.workflows import describe_datasets, export_dataset

    if output is not None and name is None:
        raise click.UsageError("-o needs the NAME of a dataset.")
    result = describe_datasets(name)
    rows = None
    if output is not None and name is not None:
        rows = export_dataset(name, output, force=force)
    if as_json:
        terminal.print_json(result.to_json())
    elif rows is not None:
        click.echo(f"Wrote {rows:,} rows to {output}.")
    elif name is None:
        header = ["name", "rows", "columns", "target", "source"]
        lines = [
            [e.name, f"{e.n:,}", str(e.d), e.target[0], "download" if e.files else "built in"]
            for e in result.entries
        ]
        click.echo(terminal.table(header, lines))
    else:
        entry = result.entries[0]
        click.echo(terminal.bold(entry.title))
        click.echo(entry.description)
        click.echo(f"{entry.n:,} rows, {entry.d} columns, target {entry.target[0]}.")
        click.echo(f"Columns: {', '.join(feature for feature, _ in entry.features)}.")
        click.echo(f"Licence: {entry.licence}.")
