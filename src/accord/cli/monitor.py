"""``accord monitor``: do a model's intervals still hold, day after day?"""

from pathlib import Path
from typing import Any

import click

from accord.cli import options, terminal

_BROKEN = 3


@click.command(short_help="Watch a saved model on new rows, with targets or before they are known.")
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.TABLE)
@options.file(
    "--state",
    about="The file with the history of the model.  [default: beside the model, NAME.monitor.json]",
)
@options.report()
@options.file(
    "--label-first",
    about="Also write the rows whose targets would teach the model most, a .csv or .parquet file.",
)
@options.count("--label-rows", default=20, about="How many such rows.")
@options.by_name
@options.strict
@options.dialect
@options.threads
@options.force
@options.common
def monitor(
    model: Path,
    table: Path,
    state: Path | None,
    report: Path | None,
    label_first: Path | None,
    force: bool,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Check MODEL on the rows of TABLE (CSV or Parquet; - for standard input), and add the result
    to its history.

    Without targets: how unlike the training rows these rows are, as a whole and by column, and what
    coverage and error to expect. With targets: whether intervals still contain the share that they
    state, by a test that stays valid if it is looked at after every table. Rows that were judged
    before are not counted again.

    The exit code is 3 once coverage no longer holds, and 0 before.

    \b
    Examples:
      accord monitor model.accord today.csv
      accord monitor model.accord today.csv --report monitor.html --force || mail -s alarm me
      accord monitor model.accord new.csv --label-first ask.csv --label-rows 50
    """
    place = model.with_suffix(".monitor.json") if state is None else state
    page = [] if report is None else terminal.with_document(report)
    wanted = [*page, *([] if label_first is None else [label_first])]
    terminal.check_files([model, table], wanted, force=force)
    # The state replaces itself at every run, but no other file.
    terminal.check_files([model, table], [*wanted, place], force=True)

    from accord._files import atomic_outputs
    from accord.tables import refuse_unknown_suffix
    from accord.workflows import monitor_table

    if label_first is not None:
        refuse_unknown_suffix(label_first)
    file = terminal.file_of(table, settings)
    with terminal.progress(quiet=quiet) as progress:
        result = monitor_table(model, file, state=place, progress=progress, **settings)
    if wanted:
        with atomic_outputs(wanted, inputs=[model, table], force=force) as places:
            if page:
                from accord.report import monitor_report

                terminal.write_report(places, monitor_report(result), result.to_json())
            if label_first is not None:
                result.write_label_first(places[-1])
    if as_json:
        terminal.print_json(result.to_json())
        raise click.exceptions.Exit(_BROKEN if result.broken else 0)
    terminal.notes(result.warnings, quiet=quiet)
    terminal.print_verdict(result.verdict)
    terminal.wrote(wanted)
    raise click.exceptions.Exit(_BROKEN if result.broken else 0)
