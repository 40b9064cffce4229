"""``accord datasets`` and ``accord demo``: data that the library knows, and every step on some."""

import shutil
import sys
from pathlib import Path

import click

from accord.cli import options, terminal
from accord.cli.fit import write_fit


@click.command(short_help="List the known datasets, or write one as a table.")
@click.argument("name", required=False)
@options.file("--output", "-o", about="Write dataset NAME to a .csv or .parquet file.")
@options.force
@options.always
def datasets(name: str | None, output: Path | None, force: bool, as_json: bool) -> None:
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
        terminal.say(entry.title, bold=True)
        click.echo(entry.description)
        click.echo(f"{entry.n:,} rows, {entry.d} columns, target {entry.target[0]}.")
        click.echo(f"Columns: {', '.join(feature for feature, _ in entry.features)}.")
        click.echo(f"Licence: {entry.licence}.")


@click.command(short_help="Fit, predict and report on built-in data, in under a minute.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("accord-demo"),
    show_default=True,
    help="Where the files go.",
)
@options.seed
@options.force
@options.common
def demo(folder: Path, random_state: int, force: bool, quiet: bool, as_json: bool) -> None:
    """Fit a model to the diabetes study that comes with scikit-learn, and predict new rows.

    Writes patients.csv, model.accord, report.html, report.json, new-patients.csv and
    predictions.csv to a folder, by the same calls as 'accord fit' and 'accord predict'.

    \b
    Example:
      accord demo --folder look
    """
    folder.mkdir(parents=True, exist_ok=True)
    known, new, predictions, model = (
        folder / name
        for name in ("patients.csv", "new-patients.csv", "predictions.csv", "model.accord")
    )
    report = folder / "report.html"
    fitted = [model, *terminal.with_document(report)]
    terminal.check_files([], [known, new, predictions, *fitted], force=force)

    from accord.workflows import export_demo, fit_table, predict_table, table_model

    target = export_demo(known, new, random_state=random_state, force=force)
    with terminal.progress(quiet=quiet) as progress:
        untrained = table_model(n_jobs=-1, random_state=random_state)
        result = fit_table(untrained, known, target, progress=progress)
    write_fit(result, fitted, inputs=[known], force=force)
    predicted = predict_table(
        result.model, new, output=predictions, id_column="patient", force=force
    )
    if as_json:
        files = {"folder": str(folder), "report": str(report)}
        found = {"fit": result.to_json(), "predictions": predicted.to_json()}
        terminal.print_json({**files, **found})
        return
    terminal.say(f"  $ accord fit {known} --target {target}")
    terminal.say(f"  $ accord predict {model} {new} --id patient -o {predictions}")
    terminal.notes(result.notes, quiet=quiet)
    terminal.print_verdict(result.verdict)
    terminal.say(f"Predicted {predicted.n_rows} new rows: {predictions}")
    terminal.say(f"The report: {report.absolute()}", bold=True)
    terminal.say(f"With your own table: {_called()} fit table.csv --target COLUMN")


def _called() -> str:
    """How this command is called: by its name if the shell finds it, otherwise by its path."""
    path = Path(sys.argv[0])
    return "accord" if shutil.which("accord") or path.name != "accord" else str(path)
