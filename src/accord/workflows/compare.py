"""All methods on the same splits of a table: a ranking with its errors, and a conclusion."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from accord._files import OptionError
from accord._progress import Progress, parts, silent
from accord._types import Floats, Indices
from accord._wording import count, listed, listed_plainly, percent, quoted, with_error
from accord.estimators import fit_together
from accord.metrics import METRICS, Metric
from accord.portfolio import random_parts, time_parts
from accord.splits import OutlierSplit
from accord.tables import (
    TableEncoder,
    TableSource,
    TableWriter,
    TrainingData,
    read_table,
)
from accord.tabular import Assessment, SampledTable, notes_on_splits
from accord.training import EpochReport as Epochs
from accord.work import Workers, workers_of
from accord.workflows.methods import METHODS, Method, method_named

if TYPE_CHECKING:
    from distributed import Client

SplitKind = Literal["random", "unusual"]
KINDS: tuple[SplitKind, ...] = ("random", "unusual")
SPLIT_WORDS: dict[SplitKind, str] = {"random": "random rows", "unusual": "unusual rows"}

COLUMNS: tuple[Metric, ...] = tuple(
    METRICS[name] for name in ("nll", "crps", "rmse", "coverage", "interval_width")
)

_TEST_SHARE = 0.1
Split = tuple[SplitKind, Indices, Indices]
Fold = tuple[SplitKind, Indices, Indices, Floats, Floats]
Rows = tuple[list[Fold], Floats, Indices]  # with all targets, and the rows' numbers
Judged = tuple[dict[SplitKind, list[Assessment]], float]


@dataclass(frozen=True)
class MethodScore:
    """One method on one kind of split: means over its splits, and their standard errors.

    The standard error of a single split is NaN: nothing is known about it.
    """

    method: str
    split: SplitKind
    figures: dict[str, float]
    errors: dict[str, float]
    seconds: float

    @classmethod
    def of(
        cls, method: str, split: SplitKind, found: list[Assessment], *, seconds: float
    ) -> "MethodScore":
        tables = [part.figures() for part in found]
        columns = {name: np.array([table[name] for table in tables]) for name in tables[0]}
        root = np.sqrt(len(found))
        errors = {
            name: float(values.std(ddof=1) / root) if len(values) > 1 else float("nan")
            for name, values in columns.items()
        }
        means = {name: float(values.mean()) for name, values in columns.items()}
        return cls(method, split, means, errors, seconds)

    def cell(self, metric: Metric, *, typical: float | None = None) -> str:
        """A figure with its standard error; ``typical`` is that of the other methods.

        >>> MethodScore("a", "random", {"nll": 1.234}, {"nll": 0.05}, 1.0).cell(METRICS["nll"])
        '1.234 ± 0.050'
        """
        value, error = self.figures[metric.name], self.errors[metric.name]
        if metric.format != "percent":
            return with_error(value, error, typical=typical)
        spread = f" ± {100 * error:.1f}" if np.isfinite(error) else ""
        return f"{percent(value, 1)}{spread}"


@dataclass(frozen=True)
class CompareResult:
    """All methods on the same splits; ``failures`` maps those that failed to the reason."""

    source: str
    target: str
    n_rows: int
    coverage: float
    scores: tuple[MethodScore, ...]
    assessments: dict[tuple[str, SplitKind], Assessment]
    failures: dict[str, str]
    about: dict[str, str]
    absent: tuple[str, ...]
    notes: tuple[str, ...]
    n_splits: int
    seconds: float

    def ranked(self, split: SplitKind) -> list[MethodScore]:
        """The methods on a kind of split, the best likelihood first."""
        return sorted((s for s in self.scores if s.split == split), key=lambda s: s.figures["nll"])

    def level_with_best(self, split: SplitKind) -> list[str]:
        """Methods that cannot be distinguished from the best: within one standard error of it."""
        best, *others = self.ranked(split)
        return [
            s.method
            for s in others
            if s.figures["nll"] - best.figures["nll"]
            <= np.hypot(s.errors["nll"], best.errors["nll"])
        ]

    def lines(self, split: SplitKind) -> list[tuple[str, list[str]]]:
        """Each method's cells, the best method first; a column's cells have the same decimals."""
        ranked = self.ranked(split)
        cells = [[score.cell(m, typical=_typical(ranked, m)) for m in COLUMNS] for score in ranked]
        return [
            (score.method, [*own, f"{score.seconds:.1f}"])
            for score, own in zip(ranked, cells, strict=True)
        ]

    def table(self, split: SplitKind) -> tuple[list[str], list[list[str]]]:
        """Header and rows of text for one kind of split, the best first, failures last."""
        header = [SPLIT_WORDS[split], *(metric.title for metric in COLUMNS), "s/fit"]
        rows = [[method, *cells] for method, cells in self.lines(split)]
        rows += [[method, "– failed", *[""] * len(COLUMNS)] for method in self.failures]
        return header, rows

    def headline(self) -> str:
        """Which methods to take, in a sentence."""
        if not self.scores:
            return "Every method failed."
        inside, outside = self.ranked("random")[0].method, self.ranked("unusual")[0].method
        if inside == outside:
            first = f"The best likelihood on random and on unusual rows: {inside}"
        else:
            first = f"The best likelihood on random rows: {inside}; on unusual ones: {outside}"
        level = [
            name
            for name in self.level_with_best("random")
            if name in {*self.level_with_best("unusual"), outside}
        ]
        if level:
            first += f"; {listed_plainly(level)} cannot be distinguished from the best on either"
        if self.n_splits == 1:
            first += ". One split of each kind cannot tell how sure that is"
        return f"{first}."

    def conclusion(self) -> str:
        """The headline with what it rests on."""
        missing = f" Not installed: {', '.join(self.absent)}." if self.absent else ""
        failed = "".join(f" {name} failed: {why}" for name, why in self.failures.items())
        splits = count(self.n_splits, "split")
        return f"{self.headline()} (NLL: lower is better; {splits} of each kind.){missing}{failed}"

    def write_scores(self, path: Path) -> None:
        """All figures as a table, one row per method and kind of split."""
        lines = [{**line, "failure": line.get("failure", "")} for line in self._lines()]
        columns = list(dict.fromkeys(name for line in lines for name in line))
        whole = [{name: line.get(name) for name in columns} for line in lines]
        with TableWriter(path) as writer:
            writer.write(pa.Table.from_pylist(whole))

    def to_json(self) -> dict[str, Any]:
        return {
            "scores": self._lines(),
            "conclusion": self.conclusion(),
            "about": self.about,
            "failures": self.failures,
            "not_installed": list(self.absent),
            "notes": list(self.notes),
            "splits": self.n_splits,
            "seconds": round(self.seconds, 2),
        }

    def _lines(self) -> list[dict[str, Any]]:
        scored = [
            {
                "method": s.method,
                "split": s.split,
                **s.figures,
                **{f"{metric.name}_error": s.errors[metric.name] for metric in COLUMNS},
                "seconds": round(s.seconds, 2),
            }
            for kind in KINDS
            for s in self.ranked(kind)
        ]
        return scored + [{"method": n, "failure": why} for n, why in self.failures.items()]


def _typical(scores: Sequence[MethodScore], metric: Metric) -> float | None:
    """The median standard error of several methods; None if no error is known."""
    errors = np.array([score.errors[metric.name] for score in scores])
    known = errors[np.isfinite(errors) & (errors > 0)]
    return float(np.median(known)) if len(known) else None


def compare_methods(
    table: TableSource,
    *,
    target: str,
    n_splits: int = 3,
    methods: Sequence[str | Method] | None = None,
    group: str | None = None,
    time: str | None = None,
    ignore: Sequence[str] = (),
    use: Sequence[str] = (),
    category: Sequence[str] = (),
    coverage: float = 0.95,
    random_state: int = 0,
    progress: Progress | None = None,
    client: "Client | None" = None,
) -> CompareResult:
    """Train every method on the same random splits and on as many outlier splits.

    Random splits hold out what :func:`fit_table` holds out together: groups, stretches of time, or
    copies of a row; the methods themselves are not told of them. All see the same preprocessed
    features; each is trained with the settings that its ``about`` names. A method that fails is
    reported as such, and the others are kept.

    Args:
        table: File or DataFrame with the target among its columns.
        target: The column to predict.
        n_splits: Splits of either kind.
        methods: Names from :data:`METHODS`, or methods of your own; all that are listed unless
            given.
        group: A column whose rows belong together (a person, a machine): they are held out
            together.
        time: A column that orders the rows: they are held out in blocks of time.
        ignore: Columns not to be used.
        use: Columns to be used although they look like row numbers or names of rows.
        category: Columns of numbers that are names of kinds, such as postcodes or machine types.
        coverage: Share of the values that intervals should contain.
        random_state: The same number gives the same splits and models.
        progress: Called with the share of the work that is done.
        client: A Dask client, whose workers train, each a method at a time.
    """
    start = perf_counter()
    progress = progress or silent
    chosen = _chosen(methods)
    present = [method for method in chosen if method.installed]
    progress(0.0, "Reading")
    source = read_table(table)
    sample = SampledTable.read(
        source,
        {"target": target},
        group=group,
        time=time,
        ignore=ignore,
        use=use,
        category=category,
    )
    data, splits = sample.data, _splits(sample, n_splits, random_state)
    folds = _prepared(data, splits, random_state)
    scores: list[MethodScore] = []
    assessments: dict[tuple[str, SplitKind], Assessment] = {}
    failures: dict[str, str] = {}
    for method, outcome in _outcomes(
        present, (folds, data.y, data.rows), coverage, random_state, progress, workers_of(client)
    ):
        if isinstance(outcome, Exception):  # the method gets a row that says so
            failures[method.name] = f"{type(outcome).__name__}: {' '.join(str(outcome).split())}"
            continue
        found, seconds = outcome
        for kind, judged in found.items():
            scores.append(MethodScore.of(method.name, kind, judged, seconds=seconds))
            assessments[method.name, kind] = Assessment.join(judged)
    return CompareResult(
        source=source.name,
        target=target,
        n_rows=len(data.y),
        coverage=coverage,
        scores=tuple(scores),
        assessments=assessments,
        failures=failures,
        about={method.name: method.about for method in present},
        absent=tuple(method.name for method in chosen if not method.installed),
        notes=(
            *data.notes,
            *notes_on_splits(sample.suspects, sample.together, group=group),
            *_on_time(time),
            *_fewer(len(splits) // 2, n_splits),
        ),
        n_splits=len(splits) // 2,
        seconds=perf_counter() - start,
    )


def _chosen(wanted: Sequence[str | Method] | None) -> list[Method]:
    if wanted is None:
        return list(METHODS)
    found = [method_named(name) if isinstance(name, str) else name for name in wanted]
    if not any(method.installed for method in found):
        packages = " ".join(str(method.package) for method in found)
        raise OptionError(
            f"a method to compare must be installed, got {listed(method.key for method in found)}. "
            f"Run: pip install {packages}"
        )
    return list(dict.fromkeys(found))


def _splits(sample: SampledTable, n_splits: int, seed: int) -> list[Split]:
    """Random splits, and as many that hold out the most unusual rows.

    They are fewer than asked for where the rows form fewer groups.
    """
    n_parts = min(max(n_splits, round(1 / _TEST_SHARE)), len(sample.data.y) // 2)
    if sample.moments is not None:
        parts = time_parts(sample.moments, n_parts)
    else:
        assert sample.together is not None, "rows have an order or are held together"
        parts = random_parts(sample.together, n_parts, seed=seed)
    parts = [part for part in parts if len(part.test) > 1]
    chosen = np.random.default_rng(seed).permutation(len(parts))[:n_splits]
    splits: list[Split] = [("random", parts[own].train, parts[own].test) for own in chosen]
    outliers = OutlierSplit(len(splits), fraction=_TEST_SHARE, random_state=seed)
    return splits + [("unusual", train, test) for train, test in outliers.split(sample.features)]


def _on_time(time: str | None) -> list[str]:
    return [] if time is None else [f"Random rows are stretches of time, by {quoted(time)}."]


def _fewer(n_splits: int, wanted: int) -> list[str]:
    if n_splits == wanted:
        return []
    made = count(n_splits, "split")
    return [f"{made} of each kind: for {wanted}, the rows or their groups are too few."]


def _prepared(data: TrainingData, splits: list[Split], seed: int) -> list[Fold]:
    """Features of each split, preprocessed by what its training rows know."""
    folds = []
    for kind, train, test in splits:
        pipeline = TableEncoder(data.schema, random_state=seed)
        features = pipeline.fit_transform(data.X.iloc[train], data.y[train])
        folds.append((kind, train, test, features, pipeline.transform(data.X.iloc[test])))
    return folds


def _outcomes(
    methods: Sequence[Method],
    rows: Rows,
    coverage: float,
    seed: int,
    progress: Progress,
    workers: Workers,
) -> list[tuple[Method, Judged | Exception]]:
    """What each method came to, in their order."""
    shared, shares = workers.share(rows), list(parts(progress, [1.0] * len(methods)))
    found: dict[int, Judged | Exception] = {}

    def calls() -> Iterator[tuple[Any, ...]]:
        for method, running in zip(methods, shares, strict=True):
            progress(len(found) / len(methods), method.name)
            yield method, shared, coverage, seed, running if workers.in_process else silent

    for number, judged, error in workers.run(_run, calls()):
        found[number] = judged if error is None else error
        progress(len(found) / len(methods), methods[number].name)
    return [(method, found[number]) for number, method in enumerate(methods)]


def _run(method: Method, rows: Rows, coverage: float, seed: int, progress: Progress) -> Judged:
    start = perf_counter()
    folds, y, numbers = rows
    jobs: list[tuple[Any, ...]] = [
        (method.make(seed + place), features, y[train])
        for place, (_, train, _, features, _) in enumerate(folds)
    ]
    widths = [fold[3].shape[1] for fold in folds]
    fit_together(jobs, listener=_share_of_epochs(widths, lambda s: progress(s, method.name)))
    seconds = (perf_counter() - start) / len(folds)
    found: dict[SplitKind, list[Assessment]] = {}
    for (model, *_), (kind, _, test, _, features) in zip(jobs, folds, strict=True):
        assessment = Assessment.of(
            model.predict_dist(features), y[test], rows=numbers[test], coverage=coverage
        )
        found.setdefault(kind, []).append(assessment)
    return found, seconds


def _share_of_epochs(
    widths: Sequence[int], advance: Callable[[float], None]
) -> Callable[[Epochs], None]:
    """A listener that makes one share of the epochs of several stacks.

    Jobs with equally many features are trained as one stack, one stack after the other.

    >>> seen = []
    >>> listen = _share_of_epochs([3, 3, 4], seen.append)
    >>> for epoch in (1, 2, 1, 2):
    ...     listen(Epochs(epoch, 2, 5, 0.0))
    >>> [round(share, 2) for share in seen]
    [0.33, 0.67, 0.83, 1.0]
    """
    stacks = [widths.count(width) for width in dict.fromkeys(widths)]
    finished, last = 0, 0

    def listen(epochs: Epochs) -> None:
        nonlocal finished, last
        finished += epochs.epoch <= last
        last = epochs.epoch
        done = sum(stacks[:finished])
        running = stacks[finished] if finished < len(stacks) else 0
        advance((done + running * epochs.epoch / epochs.n_epochs) / len(widths))

    return listen
