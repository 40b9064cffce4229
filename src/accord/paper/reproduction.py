"""The paper from one call: plan, run, compare, write."""

import html
import json
import os
import platform
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import __version__
from accord._code import LIBRARIES
from accord._files import write_whole
from accord._progress import Progress, silent
from accord._wording import count
from accord.datasets import load, names
from accord.paper import calibration, discussion, expansion, table1, table2, table3, toy
from accord.paper.claims import JudgedClaim, counted, from_csv, to_csv
from accord.paper.results import MeanOverSplits, Results, Written
from accord.paper.runner import run
from accord.paper.shift import study as shift
from accord.paper.stacks import RecordStore, Stack, missing, records_of, stacks_of
from accord.paper.study import Study
from accord.paper.tables import ResultTable, numbers_in
from accord.work import workers_of

if TYPE_CHECKING:
    from distributed import Client


STUDIES: tuple[Study, ...] = tuple(
    module.STUDY for module in (toy, table1, calibration, table2, table3, discussion, expansion)
)
"""Those of the paper, which ``"all"`` means."""
OWN_STUDIES: tuple[Study, ...] = (shift.STUDY,)
"""Those of questions that the paper does not ask."""
_SUMMARY = "summary.json"


def study_named(name: str) -> Study:
    """A study by name, the paper's or ours.

    Example:
        >>> study_named("table3").title
        'Table 3: test NLL on the most anomalous tenth'
    """
    studies = (*STUDIES, *OWN_STUDIES)
    for study in studies:
        if study.name == name:
            return study
    known = ", ".join(study.name for study in studies)
    raise ValueError(f"study must be one of {known}, got {name!r}.")


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
class StudyResult:
    """What came out of one study."""

    study: Study
    tables: tuple[ResultTable, ...]
    claims: tuple[JudgedClaim, ...]
    beyond: tuple[JudgedClaim, ...]
    figures: tuple[Drawn, ...]

    @property
    def files(self) -> list[str]:
        """What is written for this study alone, by its place in the folder."""
        tables = [f"tables/{table.name}.{end}" for table in self.tables for end in ("csv", "md")]
        return tables + [f"figures/{d.name}.{end}" for d in self.figures for end in ("svg", "png")]

    @property
    def is_ours(self) -> bool:
        """Whether the paper asks nothing of the kind."""
        return bool(self.study.terms)


@dataclass(frozen=True)
class Reproduction:
    """All that came out, study by study, what it cost, and how each study was made.

    ``files`` are those of each study in the folder, also of studies that are not among these.
    """

    parts: tuple[StudyResult, ...]
    costs: tuple[StudyCost, ...]
    failed: tuple[str, ...]
    runs: dict[str, dict[str, Any]]
    files: dict[str, list[str]] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, Any]:
        """What ``summary.json`` holds: no table, but all that the next run in the folder needs."""
        claims = self.claims
        return {
            "made": self.runs,
            "costs": {
                cost.study: {"networks": cost.networks, "core_seconds": cost.seconds}
                for cost in self.costs
            },
            "networks": sum(cost.networks for cost in self.costs),
            "core_seconds": round(sum(cost.seconds for cost in self.costs), 1),
            "claims": {
                predictive: counted([v for v in claims if v.predictive == predictive])
                for predictive in dict.fromkeys(v.predictive for v in claims)
            },
            "beyond": counted(self.beyond),
            "failed": list(self.failed),
            "files": self.files,
        }

    @property
    def tables(self) -> tuple[ResultTable, ...]:
        return tuple(table for part in self.parts for table in part.tables)

    @property
    def claims(self) -> tuple[JudgedClaim, ...]:
        """Verdicts on what the paper says."""
        return tuple(verdict for part in self.parts for verdict in part.claims)

    @property
    def beyond(self) -> tuple[JudgedClaim, ...]:
        """Verdicts on what it does not say: other recipes, local tolerances, questions of ours."""
        return tuple(verdict for part in self.parts for verdict in part.beyond)

    @property
    def beyond_the_paper(self) -> tuple[JudgedClaim, ...]:
        """Those that the paper's own studies end with; a study of ours has its verdicts in it."""
        return tuple(v for part in self.parts if not part.is_ours for v in part.beyond)

    @property
    def made(self) -> list[tuple[list[str], dict[str, Any]]]:
        """Which studies were made when, by which protocol and with which versions of what."""
        groups: list[tuple[list[str], dict[str, Any]]] = []
        for name, how in self.runs.items():
            if alike := [names for names, other in groups if other == how]:
                alike[0].append(name)
            else:
                groups.append(([name], how))
        return groups

    @property
    def quick(self) -> bool:
        """Whether any study was made with few splits."""
        return any(how["protocol"] == "quick" for _, how in self.made)

    @property
    def title(self) -> str:
        """What all of it is about."""
        if len(self.parts) == 1 and self.parts[0].is_ours:
            return self.parts[0].study.title
        return "The paper's tables and figures, ours beside the published"


def reproduce(
    studies: Sequence[str] = ("all",),
    *,
    folder: str | Path,
    records: str | Path | None = None,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    client: "Client | None" = None,
) -> Reproduction:
    """Run studies of the paper and write what came out beside what was published.

    Records already there are used again if the same settings, code and data would make them again;
    so a stopped run goes on where it was, having lost at most the stacks in progress. A record file
    that is malformed is named, set aside and made again. Tables and figures that an earlier run
    wrote for one of these studies, and this one no longer writes, are removed. Other studies of the
    paper that the folder holds stay as they are, with their numbers, verdicts, dates and costs.

    Args:
        studies: Names of :data:`~accord.paper.STUDIES` or :data:`~accord.paper.OWN_STUDIES`, or
            ``"all"`` for the former.
        folder: Where tables, figures, verdicts and the summary go.
        records: Where the per-split records go; ``records`` in ``folder`` unless given.
        quick: Fewer splits: minutes instead of hours.
        jobs: Processes; one per core unless given.
        progress: Called with the share of the work that is done.
        client: A Dask client, whose workers train instead. They find the data as this process does.
    """
    progress = progress or silent
    chosen = _chosen(studies)
    target = Path(folder)
    store = RecordStore(Path(records) if records is not None else target / "records")
    stacks = stacks_of(chosen, quick=quick)
    left, aside = missing(stacks, store)
    for path in aside:
        warnings.warn(
            f"{path.with_suffix('.json')} is no whole record: kept as {path.name}.", stacklevel=2
        )
    workers = (jobs or os.cpu_count() or 1) if client is None else workers_of(client).count
    for dataset in dict.fromkeys(stack.dataset for stack in left if stack.dataset in names()):
        load(dataset)  # fetched once, here, where a missing file stops everything with one error
    before = f", {len(stacks) - len(left)} done before" if len(left) < len(stacks) else ""
    progress(0.0, f"{count(len(left), 'stack')} of networks to train{before}, {workers} at a time")
    failed = run(left, store.folder, jobs=workers, progress=progress, client=client)
    for label, reason in failed.items():
        warnings.warn(f"{label} failed: {reason}", stacklevel=2)
    results = Results(records_of(stacks, store))
    made = {study.name: _run_of(study, stacks, quick) for study in chosen}
    now = _outcome(chosen, results, target, tuple(failed), made)
    outcome = _write(_beside(_written(target, made), now), target)
    progress(1.0)
    return outcome


def lay_out(folder: str | Path) -> Reproduction:
    """The pages of a reproduction again, from the tables, verdicts and figures that it wrote.

    Nothing is trained and no number changes: what was written is laid out as tables are now. A
    study whose tables are made of single splits, such as ``"shift"``, needs its records instead.

    Args:
        folder: Where :func:`reproduce` wrote.
    """
    target = Path(folder)
    if not (target / _SUMMARY).exists():
        raise FileNotFoundError(
            f"folder must hold the summary.json of a reproduction, got {target}. Run reproduce()."
        )
    made = _summary_in(target).get("made", ())
    if not made:
        raise ValueError(
            f"folder must hold a summary.json that names the studies made, got {target} without "
            "any. Run reproduce() again."
        )
    if own := [name for name in made if study_named(name) in OWN_STUDIES]:
        raise ValueError(
            f"pages must be of the paper's studies, got {', '.join(own)}, whose tables are made of "
            "its records. Run reproduce() in the same folder, which uses them again."
        )
    return _write(_written(target), target)


def _summary_in(folder: Path) -> dict[str, Any]:
    """The summary that an earlier run wrote, empty if none did."""
    path = folder / _SUMMARY
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _written(folder: Path, without: Collection[str] = ()) -> Reproduction:
    """What earlier runs wrote of the paper's studies, but for some."""
    summary = _summary_in(folder)
    made = summary.get("made", {})
    studies = [study for study in STUDIES if study.name in made and study.name not in without]
    names = [study.name for study in studies]
    judged = {}
    if studies:
        verdicts = from_csv((folder / "verdicts.csv").read_text(encoding="utf-8"))
        judged = {(v.where, v.claim, v.predictive): v for v in verdicts}
    parts = tuple(_written_part(s, summary["files"][s.name], folder, judged) for s in studies)
    costs = tuple(
        StudyCost(name, cost["networks"], cost["core_seconds"])
        for name, cost in summary.get("costs", {}).items()
        if name in names
    )
    failed = tuple(f for f in summary.get("failed", ()) if f.split()[0] in names)
    return Reproduction(parts, costs, failed, {name: made[name] for name in names})


def _beside(earlier: Reproduction, now: Reproduction) -> Reproduction:
    """Studies of earlier runs and of this one, in the order of the paper.

    A study's cost is that of the run which made it, also where another study reads its records.
    """
    order = [study.name for study in (*STUDIES, *OWN_STUDIES)]
    parts = sorted((*earlier.parts, *now.parts), key=lambda part: order.index(part.study.name))
    costs = {cost.study: cost for cost in (*now.costs, *earlier.costs)}
    runs = earlier.runs | now.runs
    return Reproduction(
        tuple(parts),
        tuple(costs[name] for name in order if name in costs),
        earlier.failed + now.failed,
        {name: runs[name] for name in order if name in runs},
    )


def _written_part(
    study: Study,
    files: Sequence[str],
    folder: Path,
    judged: Mapping[tuple[str, str, str], JudgedClaim],
) -> StudyResult:
    written: dict[Written, MeanOverSplits] = {}
    for name in (name for name in files if name.endswith(".csv")):
        written |= numbers_in((folder / name).read_text(encoding="utf-8"))
    results = Results((), written)

    def verdicts(claims: Iterable[JudgedClaim]) -> tuple[JudgedClaim, ...]:
        return tuple(judged.get((c.where, c.claim, c.predictive), c) for c in claims)

    return StudyResult(
        study,
        tuple(study.tables(results)),
        verdicts(study.claims(results)),
        verdicts(study.beyond(results)),
        tuple(_written_figure(folder / name) for name in files if name.endswith(".svg")),
    )


def _written_figure(path: Path) -> Drawn:
    svg = path.read_text(encoding="utf-8")
    words = re.search(r'aria-label="([^"]*)"', svg)
    on_page = re.sub(r"<style>.*?</style>", "", svg, count=1).strip()  # the page has its own
    return Drawn(path.stem, html.unescape(words.group(1)) if words else "", on_page)


def _chosen(names: Sequence[str]) -> list[Study]:
    if "all" in names:
        return list(STUDIES)
    return [study_named(name) for name in dict.fromkeys(names)]


def _outcome(
    studies: Sequence[Study],
    results: Results,
    folder: Path,
    failed: tuple[str, ...],
    made: dict[str, dict[str, Any]],
) -> Reproduction:
    parts = tuple(
        StudyResult(
            study,
            tuple(study.tables(results)),
            tuple(study.claims(results)),
            tuple(study.beyond(results)),
            _drawn(study, results, folder / "figures"),
        )
        for study in studies
    )
    # records shared from another study count where they are needed
    read = sorted({record.source.study for record in results.records})
    costs = tuple(StudyCost(n, results.networks(n), round(results.seconds(n), 1)) for n in read)
    return Reproduction(parts, costs, failed, made)


def _drawn(study: Study, results: Results, folder: Path) -> tuple[Drawn, ...]:
    # Lazy: the drawing library is large, and the workers that import this package do not draw.
    from accord import plots

    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figure, words in study.figures(results):
        for ending in ("svg", "png"):
            plots.save(figure, folder / f"{name}.{ending}", alt=words)
        drawn.append(Drawn(name, words, plots.to_svg(figure, alt=words)))
    return tuple(drawn)


def _write(outcome: Reproduction, folder: Path) -> Reproduction:
    """Write all but the figures, and remove what is stale; gives it with the folder's files."""
    from accord.paper.page import markdown_page

    outcome = replace(outcome, files=_without_stale(outcome.parts, folder))
    for table in outcome.tables:
        numbers = folder / "tables" / f"{table.name}.csv"
        # a file with these numbers stays: read again, they have fewer digits
        if not numbers.exists() or numbers_in(numbers.read_text("utf-8")) != table.numbers():
            write_whole(numbers, table.to_csv())
        write_whole(folder / "tables" / f"{table.name}.md", table.to_markdown())
    write_whole(folder / "verdicts.csv", to_csv(outcome.claims, outcome.beyond))
    text = json.dumps(outcome.summary, indent=1, ensure_ascii=False) + "\n"
    write_whole(folder / _SUMMARY, text)
    write_whole(folder / "README.md", markdown_page(outcome))
    return outcome


def _without_stale(parts: Sequence[StudyResult], folder: Path) -> dict[str, list[str]]:
    """Remove what an earlier run wrote for these studies and this one does not.

    Returns what there is by study now, also of studies that were not run; the next run reads it.
    """
    files: dict[str, list[str]] = _summary_in(folder).get("files", {})
    now = {part.study.name: part.files for part in parts}
    kept = {name for listed in (files | now).values() for name in listed}
    for study in now:
        for name in set(files.get(study, ())) - kept:
            if (folder / name).parent in (folder / "tables", folder / "figures"):
                (folder / name).unlink(missing_ok=True)
    return files | now


def _run_of(study: Study, stacks: Sequence[Stack], quick: bool) -> dict[str, Any]:
    """When, how and with what a study is made."""
    codes = sorted({stack.code for stack in stacks if stack.group.study == study.name})
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "protocol": "quick" if quick else "full",
        "versions": {
            "accord": __version__,
            "python": platform.python_version(),
            **{library: version(library) for library in LIBRARIES},
        },
        "code": " ".join(codes),
    }
