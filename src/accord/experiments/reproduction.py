"""The paper from one call: plan, run, compare, write."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from accord._version import __version__
from accord.datasets import load
from accord.experiments.aims import NOTE, aims_of
from accord.experiments.comparisons import tables_of
from accord.experiments.descriptions import Study
from accord.experiments.fingerprint import fingerprint
from accord.experiments.plan import missing, stacks_of
from accord.experiments.progress import Listener, Silent, duration
from accord.experiments.records import RecordStore, write_whole
from accord.experiments.results import Results
from accord.experiments.runner import run
from accord.experiments.studies import STUDIES, study_named
from accord.experiments.tables import Table
from accord.experiments.verdicts import Verdict, to_csv, to_markdown, verdicts_of

__all__ = ["Reproduction", "StudyCost", "reproduce"]

_LIBRARIES = ("numpy", "scikit-learn", "scipy", "torch")


@dataclass(frozen=True)
class StudyCost:
    """What a study took: networks trained, and seconds of one core, over all runs."""

    study: str
    networks: int
    seconds: float


@dataclass(frozen=True)
class Drawn:
    """A figure that was written as ``figures/<name>.svg`` and ``.png``; ``svg`` is for a page."""

    name: str
    words: str
    svg: str


@dataclass(frozen=True)
class Reproduction:
    """All that came out: tables, verdicts on the paper's claims, our own aims, figures, costs."""

    studies: tuple[Study, ...]
    quick: bool
    tables: tuple[Table, ...]
    claims: tuple[Verdict, ...]
    aims: tuple[Verdict, ...]
    figures: tuple[Drawn, ...]
    costs: tuple[StudyCost, ...]
    failed: tuple[str, ...]
    summary: dict[str, Any]


def reproduce(
    studies: Sequence[str] = ("all",),
    *,
    folder: str | Path,
    records: str | Path | None = None,
    quick: bool = False,
    jobs: int | None = None,
    listener: Listener | None = None,
) -> Reproduction:
    """Run studies of the paper and write what came out beside what was published.

    Records already there are used again if the same settings, code and data would make them again;
    so a stopped run goes on where it was, having lost at most the stacks in progress.

    Args:
        studies: Names of :data:`~accord.experiments.STUDIES`, or ``"all"``.
        folder: Where tables, figures, verdicts and the summary go.
        records: Where the per-split records go; ``records`` in ``folder`` unless given.
        quick: Fewer splits: minutes instead of hours.
        jobs: Processes; one per core unless given.
        listener: Told of the progress.
    """
    listener = listener or Silent()
    chosen = _chosen(studies)
    target = Path(folder)
    store = RecordStore(Path(records) if records is not None else target / "records")
    store.sweep()
    code = fingerprint("accord.experiments.stacks")
    stacks = stacks_of(chosen, STUDIES, quick=quick, code=code)
    left = missing(stacks, store)
    workers = jobs or os.cpu_count() or 1
    for dataset in dict.fromkeys(stack.dataset for stack in left):
        load(dataset)  # fetched once, here, where a missing file stops everything with one error
    listener.planned(left, done=len(stacks) - len(left), jobs=workers)
    failed = run(left, store.folder, jobs=workers, listener=listener)
    results = Results.of(stacks, store)
    outcome = _written(chosen, results, target, quick, tuple(stack.label for stack in failed), code)
    for cost in outcome.costs:
        listener.said(
            f"{cost.study}: {cost.networks:,} networks in {duration(cost.seconds)} of one core."
        )
    return outcome


def _chosen(names: Sequence[str]) -> list[Study]:
    if "all" in names:
        return list(STUDIES)
    return [study_named(name) for name in dict.fromkeys(names)]


def _written(
    studies: Sequence[Study],
    results: Results,
    folder: Path,
    quick: bool,
    failed: tuple[str, ...],
    code: str,
) -> Reproduction:
    names = [study.name for study in studies]
    tables = tuple(table for name in names for table in tables_of(name, results))
    claims = tuple(verdict for name in names for verdict in verdicts_of(name, results))
    aims = tuple(verdict for name in names for verdict in aims_of(name, results))
    figures = _draw(names, results, folder / "figures")
    # records shared from another study count where they are needed
    made = list(dict.fromkeys(record.study for record in results.records))
    costs = tuple(StudyCost(n, results.networks(n), results.seconds(n)) for n in sorted(made))
    summary = _summary(names, quick, costs, claims, aims, failed, code)
    for table in tables:
        write_whole(folder / "tables" / f"{table.name}.csv", table.to_csv())
        write_whole(folder / "tables" / f"{table.name}.md", table.to_markdown())
    write_whole(folder / "verdicts.csv", to_csv([*claims, *aims]))
    write_whole(folder / "summary.json", json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    outcome = Reproduction(
        tuple(studies), quick, tables, claims, aims, figures, costs, failed, summary
    )
    write_whole(folder / "README.md", _page(outcome))
    return outcome


def _draw(names: Sequence[str], results: Results, folder: Path) -> tuple[Drawn, ...]:
    # Lazy: the drawing library is large, and the workers that import this package do not draw.
    from accord import plots
    from accord.experiments.figures import drawings_of

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in names:
        for title, figure, words in drawings_of(name, results):
            for ending in ("svg", "png"):
                plots.save(figure, folder / f"{title}.{ending}", alt=words)
            drawn.append(Drawn(title, words, plots.to_svg(figure, alt=words)))
    return tuple(drawn)


def _summary(
    names: Sequence[str],
    quick: bool,
    costs: Sequence[StudyCost],
    claims: Sequence[Verdict],
    aims: Sequence[Verdict],
    failed: Sequence[str],
    code: str,
) -> dict[str, Any]:
    return {
        "studies": list(names),
        "protocol": "quick" if quick else "full",
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {
            "accord": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        "code": code,
        "costs": {
            cost.study: {"networks": cost.networks, "core_seconds": round(cost.seconds, 1)}
            for cost in costs
        },
        "networks": sum(cost.networks for cost in costs),
        "core_seconds": round(sum(cost.seconds for cost in costs), 1),
        "claims": _counted(claims),
        "aims": _counted(aims),
        "failed": list(failed),
    }


def _counted(verdicts: Sequence[Verdict]) -> dict[str, int]:
    outcomes = [verdict.outcome for verdict in verdicts]
    return {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}


def _page(outcome: Reproduction) -> str:
    """Everything on one page, tables in the studies' order."""
    summary = outcome.summary
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    costs = [
        f"| {cost.study} | {cost.networks:,} | {duration(cost.seconds)} |" for cost in outcome.costs
    ]
    parts = [
        "# The paper's tables and figures, ours beside the published",
        f"Made by `accord reproduce` on {summary['date']} ({summary['protocol']} protocol): "
        f"{versions}.",
        "## The paper's claims",
        to_markdown(outcome.claims),
        *(["## Reaching further", NOTE, to_markdown(outcome.aims)] if outcome.aims else []),
        "## Tables",
        *(table.to_markdown() for table in outcome.tables),
        "## Figures",
        *(f"![{figure.words}](figures/{figure.name}.svg)" for figure in outcome.figures),
        "## How it was made",
        *(f"- **{study.title}**: {study.about}" for study in outcome.studies),
        "| study | networks | time of one core |\n| --- | ---: | ---: |\n" + "\n".join(costs),
    ]
    if outcome.failed:
        parts.append("Failed, and so missing above: " + ", ".join(outcome.failed) + ".")
    return "\n\n".join(parts) + "\n"
