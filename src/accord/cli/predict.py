"""``accord predict``: a mean, intervals and a flag for each row of a table."""

from pathlib import Path
from typing import Any

import click

from accord._wording import count
from accord.cli import options, terminal


@click.command(short_help="Predict each row of a table with a saved model.")
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.TABLE)
@options.file(
    "--output",
    "-o",
    kind=options.OUTPUT,
    default="predictions.csv",
    about="A .csv or .parquet file, or - for standard output.",
)
@options.share_of(
    "--coverage",
    "coverages",
    multiple=True,
    about="Share of the values that intervals should contain; may be repeated.  [default: the "
    "model's]",
)
@options.columns("--id", "id_column", about="A column to copy to the output")
@click.option(
    "--explain",
    is_flag=True,
    help="Add columns that say where the width of each row comes from.",
)
@options.count(
    "--explain-row",
    about="Print in words why the interval of row N (from 1) is as wide as it is.",
)
@options.cluster
@options.by_name
@options.strict
@options.encoding
@options.delimiter
@options.threads
@options.force
@options.common
def predict(
    model: Path,
    table: Path,
    output: Path,
    force: bool,
    quiet: bool,
    as_json: bool,
    scheduler: str | None,
    workers: int | None,
    **settings: Any,
) -> None:
    """Predict the rows of TABLE (CSV or Parquet; - for standard input) with MODEL, in their order.

    Columns of the output: mean, std, lower and upper; noise, disagreement and distance, the three
    parts of std (in the data, between models, from the training rows); unusual, true for
    rows unlike those in training. --explain adds noise_share, disagreement_share and distance_share
    of the variance, distance_from_... by column, the nearest training rows, what is unlike them,
    and what would narrow the interval most. Files larger than memory are read and written batch by
    batch.

    \b
    Examples:
      accord predict model.accord new.csv
      accord predict model.accord new.parquet -o out.parquet --id house
      accord predict model.accord new.csv --coverage 0.5 --coverage 0.95
      accord predict model.accord new.csv --explain --explain-row 12
      cat new.csv | accord predict model.accord - -o - | head
    """
    piped = output == Path("-")
    if as_json and piped:
        raise terminal.Misused(
            "--json and '-o -' both write to standard output. Choose one of them."
        )
    terminal.check_files([model, table], [output], force=force)

    from accord._processes import keep_freed_memory
    from accord.work import connected
    from accord.workflows import predict_table

    keep_freed_memory()  # each batch takes as much as the one before
    file = terminal.file_of(table, settings)
    with (
        connected(scheduler=scheduler, workers=workers) as client,
        terminal.progress(quiet=quiet) as progress,
    ):
        result = predict_table(
            model, file, output=output, force=force, progress=progress, client=client, **settings
        )
    if as_json:
        terminal.print_json(result.to_json())
        return
    terminal.notes(result.warnings, quiet=quiet)
    unusual = f", {result.n_unusual:,} of them unusual" if result.n_unusual else ""
    terminal.say(f"Predicted {count(result.n_rows, 'row')}{unusual}.", err=piped)
    if result.receipt is not None:
        terminal.say(f"Row {settings['explain_row']:,}.\n{result.receipt}", err=piped)
    if not piped:
        terminal.wrote([output])
