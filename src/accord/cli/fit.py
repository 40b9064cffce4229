"""``accord fit``: from a table to a model file and a report."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from accord._processes import available, start_server
from accord._wording import count
from accord.cli import options, terminal

if TYPE_CHECKING:
    from accord.workflows import FitResult

# Options that name a column of the table, beside its features.
_COLUMNS = ("target", "sample_weight", "y_tolerance", "y_lower", "y_upper")
# A file with less is most likely too few rows for processes of their own.
_SMALL_FILE = 10_000


@click.command(short_help="Train a model on a table; write the model and a report.")
@click.argument("table", type=options.TABLE)
@options.target
@options.file("--output", "-o", default="model.accord", about="The model file.")
@options.report("report.html")
@click.option(
    "--method",
    default="portfolio",
    show_default=True,
    metavar="NAME",
    help="What is trained: portfolio (a blend of several kinds of model), bvm-paper (the paper's "
    "method as printed), bvm, deep-ensemble, mse-ensemble, mc-dropout, pbp or evidential.",
)
@click.option(
    "--effort",
    type=click.Choice(["quick", "standard", "best"]),
    help="How many kinds of model the portfolio tries, and for how long.  [default: standard]",
)
@click.option(
    "--time-budget",
    type=options.duration,
    metavar="TIME",
    help="Train for about this long: 90s, 5m or 1h.",
)
@options.coverage
@options.group
@options.time
@click.option(
    "--bounds",
    type=options.bounds,
    metavar="LOW,HIGH",
    default="detect",
    show_default=True,
    help="Limits of the target: '0,' (at least 0), '0,100', or none. detect: at least 0 if no "
    "value in the table is below 0.",
)
@click.option(
    "--tolerance",
    type=options.tolerance,
    metavar="EPS",
    help="How far apart model and data may be and still agree: 0.5 (target units), 1% (of the "
    "target's range), or choose (the best on held-out rows). bvm and bvm-paper also take local "
    "(grows away from the data), learn (trained with the networks), validate (the best on "
    "held-out rows) and robust (the best on the most unusual rows).  [default: choose; bvm-paper: "
    "1%; bvm: local]",
)
@click.option(
    "--rule",
    metavar="RULE",
    help="For bvm and bvm-paper, when model and data agree, in place of a tolerance: 'within 0.5', "
    "'within -0.1 +0.4', 'within 0.5 or error inside 1.9 2.1'.",
)
@click.option(
    "--predictive",
    type=click.Choice(["model", "smoothed"]),
    help="For bvm and bvm-paper, what is predicted: the networks alone, or smoothed by the "
    "tolerance.  [default: smoothed; bvm-paper: model]",
)
@click.option(
    "--family",
    type=click.Choice(["normal", "laplace", "logistic"]),
    help="For bvm and bvm-paper, the distribution that a network predicts.  [default: normal]",
)
@click.option(
    "--hidden",
    type=options.layers,
    metavar="UNITS",
    help="Units of each hidden layer of a method that is one ensemble: 50, or 50,50 for two.",
)
@options.count("--epochs", about="Passes over the table of a method that is one ensemble.")
@options.column(
    "--weight-column",
    "sample_weight",
    about="How much each row counts in training; rows with 0 are left out. The figures of the "
    "report count every other row once.",
)
@options.column(
    "--tolerance-column",
    "y_tolerance",
    about="A tolerance for each row, in target units (of the instrument, of rounding).",
)
@options.column(
    "--lower-column",
    "y_lower",
    about="Censored rows, whose target is only known to be at least this.",
)
@options.column(
    "--upper-column",
    "y_upper",
    about="Censored rows, whose target is only known to be at most this.",
)
@options.ignore
@options.use
@options.category
@options.count(
    "--max-rows",
    at_least=20,
    default=1_000_000,
    about="Of a larger file, choose and judge models on a random sample of this many rows.",
)
@options.count(
    "--passes",
    at_least=0,
    default=1,
    about="How often the networks that were chosen on a sample are then trained on all rows of the "
    "file; 0 for the sample alone.",
)
@click.option(
    "--resume/--no-resume",
    default=True,
    show_default=True,
    help="Keep finished work in a folder beside the model file until that is written, and continue "
    "from what a stopped run of the same command left there.",
)
@options.cluster
@options.seed
@options.dialect
@options.threads
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
    resume: bool,
    scheduler: str | None,
    workers: int | None,
    method: str,
    **settings: Any,
) -> None:
    """Train a model on TABLE (CSV, Parquet, a folder of Parquet files; - for standard input) and
    find out how far it can be trusted.

    Column types, missing values, categories and dates are handled. Each row is predicted by models
    that have not seen it, and the most unusual rows by models that have seen no rows like them:
    these are the figures in the report. The models that were judged are the ones saved; only a
    --method that is a single ensemble is trained once more, on all rows. Tables may be larger than
    memory: see --max-rows and --passes. If a run is stopped, run the same command again: it
    continues where it stopped.

    \b
    Examples:
      accord fit houses.csv --target price
      accord fit houses.csv --target price --effort quick --ignore agent
      accord fit patients.csv --target dose --group patient
      accord fit tests.parquet --target life --lower-column censored_at
      accord fit big.csv --target y --time-budget 5m --json > result.json
      accord fit houses.csv --target price --method bvm-paper --tolerance 1%
      accord fit big.parquet --target y --scheduler tcp://10.0.0.5:8786
    """
    wanted = [output] if no_report else [output, *terminal.with_document(report)]
    terminal.check_files([table], wanted, force=force)
    if not (scheduler or workers or settings["effort"] == "quick") and _is_large(table):
        _start_early()
    file = terminal.file_of(table, settings)
    terminal.check_roles(file, settings)

    from accord.work import Checkpoint, connected
    from accord.workflows import fit_table, table_model

    columns = {name: settings.pop(name) for name in _COLUMNS}
    model = table_model(method, n_jobs=-1, **settings)
    in_units = model.engine is None
    if not in_units and (scheduler or workers):
        raise terminal.Misused(
            f"--scheduler and --workers are for the portfolio, got --method {method}, whose "
            "networks are trained together. Leave them out."
        )
    unfinished = output.with_name(f"{output.name}.unfinished")
    kept = Checkpoint(unfinished) if resume and in_units else None
    click.get_current_context().meta[options.RESUMABLE] = kept is not None
    with (
        connected(scheduler=scheduler, workers=workers) as client,
        terminal.progress(quiet=quiet) as progress,
    ):
        result = fit_table(
            model, file, progress=progress, checkpoint=kept, client=client, **columns
        )
    write_fit(result, wanted, inputs=[table], force=force)
    if kept is not None:
        kept.clear()
    if as_json:
        terminal.print_json(result.to_json() | {"outputs": [str(path) for path in wanted]})
        return
    notes = list(result.notes)
    if kept is not None and kept.found:
        notes.insert(0, f"Used again from a stopped run: {count(kept.found, 'unit')}.")
    terminal.notes(notes, quiet=quiet)
    terminal.print_verdict(result.verdict)
    terminal.wrote(wanted)


def write_fit(
    result: "FitResult", paths: Sequence[Path], *, inputs: Sequence[Path], force: bool
) -> None:
    """Write a model and, where there are further paths, its report and the document of that."""
    from accord._files import atomic_outputs
    from accord.report import fit_report

    with atomic_outputs(paths, inputs=inputs, force=force) as (model, *report):
        result.model.save(model)
        if report:
            page = fit_report(result, model_file=paths[0].name)
            terminal.write_report(report, page, result.to_json())


def _start_early() -> None:
    """Let the portfolio's processes import beside this one, where no --method may need others.

    To know a method by its name would be to import it first.
    """
    given = click.get_current_context().get_parameter_source("method")
    if given is ParameterSource.DEFAULT:
        start_server("accord.portfolio")


def _is_large(table: Path) -> bool:
    """Whether the portfolio will most likely be trained by processes, which may begin to import."""
    one = available() == 1 or os.environ.get("OMP_NUM_THREADS") == "1"
    return not one and (not table.is_file() or table.stat().st_size > _SMALL_FILE)
