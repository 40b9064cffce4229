"""``accord reproduce``: the paper's tables and figures, ours beside the published."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accord._wording import duration, listed
from accord.cli import options, terminal

if TYPE_CHECKING:
    from accord.paper import Study


@click.command(short_help="Reproduce the paper's tables and figures.")
@click.argument("studies", nargs=-1, metavar="[STUDY]...")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Where tables, figures and records go.",
)
@click.option(
    "--records",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the records of single runs go.  [default: FOLDER/records]",
)
@click.option("--quick", is_flag=True, help="Fewer splits: minutes instead of hours.")
@options.count("--jobs", about="How many processes.  [default: one per core]")
@click.option(
    "--pages-only",
    is_flag=True,
    help="Lay out README.md and report.html again from the tables in FOLDER, and run nothing.",
)
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="List the studies, with how they differ from the paper, and stop.",
)
@options.scheduler
@options.common
def reproduce(
    studies: tuple[str, ...],
    folder: Path,
    records: Path | None,
    quick: bool,
    jobs: int | None,
    pages_only: bool,
    listing: bool,
    scheduler: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run studies of the paper, or all of them, and compare with what was published.

    'shift' is a study beyond the paper, of how far the default can be trusted on rows unlike its
    training rows; it runs only if it is named.

    A stopped run goes on where it was: run the same command again.

    \b
    Examples:
      accord reproduce --list
      accord reproduce --quick
      accord reproduce table1 table3 --folder results
      accord reproduce --pages-only --folder results
      accord reproduce shift --folder shift
      accord reproduce all --scheduler tcp://10.0.0.5:8786
    """
    from accord._files import OptionError, write_whole
    from accord.paper import (
        OWN_STUDIES,
        STUDIES,
        group_sentences,
        lay_out,
    )
    from accord.paper import reproduce as run
    from accord.report import reproduction_report
    from accord.work import connected

    everything = (*STUDIES, *OWN_STUDIES)
    known = [study.name for study in everything]
    if listing and as_json:
        terminal.print_json({"studies": {study.name: _as_data(study) for study in everything}})
        return
    if listing:
        click.echo("\n\n".join(_as_text(study) for study in everything))
        return
    if unknown := [name for name in studies if name not in (*known, "all")]:
        every = listed(known, limit=len(known))
        raise OptionError(f"studies must be among {every}, got {listed(unknown)}.")
    click.get_current_context().meta[options.RESUMABLE] = not pages_only
    if pages_only:
        write_whole(folder / "report.html", reproduction_report(lay_out(folder)))
        click.echo(f"Wrote {folder / 'report.html'} and {folder / 'README.md'}.")
        return
    with (
        connected(scheduler=scheduler) as client,
        terminal.progress(quiet=quiet or as_json) as progress,
    ):
        result = run(
            studies or ("all",),
            folder=folder,
            records=records,
            quick=quick,
            jobs=jobs,
            progress=progress,
            client=client,
        )
    write_whole(folder / "report.html", reproduction_report(result))
    if as_json:
        terminal.print_json(result.summary)  # which names what failed
        raise click.exceptions.Exit(1 if result.failed else 0)
    for cost in () if quiet else result.costs:
        networks = f"{cost.networks:,} networks in " if cost.networks else ""
        click.echo(f"{cost.study}: {networks}{duration(cost.seconds)} of one core.", err=True)
    click.echo("\n".join(group_sentences(result.parts)))
    click.echo(f"Wrote {folder / 'report.html'}, {folder / 'README.md'} and what they show.")
    if result.failed:
        raise ValueError(f"{listed(result.failed)} failed. Run the same command to try again.")


def _as_data(study: "Study") -> dict[str, Any]:
    return {
        "title": study.title,
        "about": study.about,
        "departures": [vars(departure) for departure in study.departures],
        "terms": list(study.terms),
    }


def _as_text(study: "Study") -> str:
    """A study's name and title, and its departures as paper, ours, why, or its terms."""
    lines = [f"{study.name}  {study.title}"]
    for term in study.terms:
        lines += textwrap.wrap(term, 96, initial_indent="  - ", subsequent_indent="    ")
    for departure in study.departures:
        for word, text in vars(departure).items():
            first = "  - " if word == "paper" else "    "
            lines += textwrap.wrap(
                f"{word}: {text}", 96, initial_indent=first, subsequent_indent="      "
            )
    return "\n".join(lines)
