"""``accord predict``: a mean, intervals and a flag for each row of a table."""

from pathlib import Path

import click

from accord.cli import options, terminal


@click.command(short_help="Predict each row of a table with a saved model.")
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.TABLE)
@click.option(
    "--output",
    "-o",
    type=options.FILE,
    help="A .csv or .parquet file.  [default: predictions.csv]",
    default=Path("predictions.csv"),
)
@click.option(
    "--coverage",
    "coverages",
    type=options.share,
    metavar="SHARE",
    multiple=True,
    help="Share of the values that intervals shall hold; may be repeated.  [default: 0.95]",
)
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    shell_complete=options.complete_column,
    help="A column to copy to the output.",
)
@options.by_name
@options.encoding
@options.force
@options.common
def predict(
    model: Path,
    table: Path,
    output: Path,
    coverages: tuple[float, ...],
    id_column: str | None,
    by_name: bool,
    encoding: str,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Predict the rows of TABLE (CSV or Parquet) with MODEL, in their order.

    Columns of the output: mean, std, lower and upper, aleatoric (noise), epistemic (what the
    model does not know) and unusual (true for rows unlike those in training). Files larger than
    memory are read and written piece by piece.

    \b
    Examples:
      accord predict model.skops new.csv
      accord predict model.skops new.parquet -o out.parquet --id house
      accord predict model.skops new.csv --coverage 0.5 --coverage 0.95
    """
    from accord.workflows import predict_table

    with terminal.progress(quiet=quiet) as progress:
        result = predict_table(
            model,
            table,
            output=output,
            coverages=coverages or (0.95,),
            id_column=id_column,
            by_name=by_name,
            encoding=encoding,
            force=force,
            progress=progress,
        )
    if as_json:
        terminal.print_json(result.to_json())
        return
    terminal.notes(result.warnings, quiet=quiet)
    unusual = f", {result.n_unusual:,} of them unusual" if result.n_unusual else ""
    click.echo(f"Predicted {result.n_rows:,} rows{unusual}. Wrote {result.path}.")
