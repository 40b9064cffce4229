"""``accord evaluate``: does a model hold on new labelled data?"""

from pathlib import Path
from typing import Any

import click

from accord.cli import options, terminal


@click.command(short_help="Check a saved model on new labelled rows.")
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.TABLE)
@options.report("evaluation.html")
@options.share_of(
    "--coverage",
    about="Share of the values that intervals should contain.  [default: the model's]",
)
@options.by_name
@options.strict
@options.dialect
@options.threads
@options.force
@options.common
def evaluate(
    model: Path,
    table: Path,
    report: Path,
    no_report: bool,
    force: bool,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare what MODEL predicts for TABLE with the target column of TABLE.

    \b
    Example:
      accord evaluate model.accord sold-in-june.csv --report june.html
    """
    wanted = [] if no_report else terminal.with_document(report)
    terminal.check_files([model, table], wanted, force=force)

    from accord._files import atomic_outputs
    from accord.report import evaluate_report
    from accord.workflows import evaluate_table

    file = terminal.file_of(table, settings)
    with terminal.progress(quiet=quiet) as progress:
        result = evaluate_table(model, file, progress=progress, **settings)
    if wanted:
        with atomic_outputs(wanted, inputs=[model, table], force=force) as places:
            terminal.write_report(places, evaluate_report(result), result.to_json())
    if as_json:
        terminal.print_json(result.to_json())
        return
    terminal.notes(result.warnings, quiet=quiet)
    terminal.print_verdict(result.verdict)
    terminal.wrote(wanted)
