"""Stacks of networks: which ones a reproduction needs, and one of them from data to records.

A stack is a fixed unit: one group of models on one dataset and certain splits, whatever of it is
already there. What is lost of it is made again by training all of it, so that it comes out with the
same numbers: the last digit of a sum depends on how many networks are trained together, and forty
epochs can make much of a last digit. So the splits of a stack are part of each record's question.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from accord import estimators
from accord._code import code_digest
from accord._files import write_whole
from accord._types import Indices
from accord.calibration import Recalibrated
from accord.datasets import info
from accord.paper import sets
from accord.paper.sets import Fold, curves, folds, measures
from accord.paper.study import Answer, Group, Predictive, Source, Study, StudyModel, Work
from accord.training import EpochReport


@dataclass(frozen=True)
class Cell:
    """One question: whose numbers, on which dataset and split, and all that decides the answer."""

    source: Source
    dataset: str
    split: int
    settings: Mapping[str, Any] = field(hash=False)

    @property
    def key(self) -> str:
        """Digest of everything in the cell; the order of the settings does not matter."""
        canonical = json.dumps(asdict(self), sort_keys=True, default=_plain)
        return hashlib.sha256(canonical.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Record:
    """An answer: the measures, curves for the figures, and what it cost.

    ``networks`` counts those trained for this record; the other records of the same stack have 0.
    ``seconds`` is its share of the processor time of the stack it was trained in.
    """

    source: Source
    dataset: str
    split: int
    measures: dict[str, float]
    curves: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    networks: int = 0
    seconds: float = 0.0


class RecordStore:
    """Records in a folder: one small file each, found again only by the very same question.

    The name of a file carries a digest of its cell, so a changed setting asks for another file. It
    appears under its name only when complete, so a run that is killed at any moment leaves whole
    records, and at most a stray ``.part`` until the record is made. A file that is no record all
    the same is set aside under another name, and made again. Settings hold a digest of the code
    (:func:`accord._code.code_digest`): a record is used again only if the same code would make it.

    Example:
        >>> import tempfile
        >>> store = RecordStore(Path(tempfile.mkdtemp()))
        >>> source = Source("table1", "BVM", "printed", "smoothed")
        >>> cell = Cell(source, "boston", 0, {"epochs": 40})
        >>> store.get(cell) is None
        True
        >>> store.put(cell, Record(source, "boston", 0, {"nll": 2.5}))
        >>> store.get(cell).measures
        {'nll': 2.5}
        >>> store.get(Cell(source, "boston", 0, {"epochs": 41})) is None
        True
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, cell: Cell) -> Record | None:
        """The answer to exactly this question, or None where there is none or no whole one."""
        try:
            return _read(self._path(cell), cell)
        except (FileNotFoundError, _Malformed):
            return None

    def set_aside(self, cell: Cell) -> Path | None:
        """Rename a malformed file at the place of a record, so that it is made again.

        Returns the file's new name, or None where the record is good or absent.
        """
        path = self._path(cell)
        try:
            _read(path, cell)
        except FileNotFoundError:
            return None
        except _Malformed:
            aside = path.with_suffix(".malformed")
            os.replace(path, aside)
            return aside
        return None

    def put(self, cell: Cell, record: Record) -> None:
        """Store an answer; it appears in one piece or not at all."""
        content = {"key": cell.key, "settings": dict(cell.settings), "record": asdict(record)}
        write_whole(self._path(cell), json.dumps(content, indent=1, default=_plain))

    def paths(self) -> Iterator[Path]:
        """All record files."""
        return (path for path in self.folder.glob("*/*/*.json") if not path.name.startswith("."))

    def _path(self, cell: Cell) -> Path:
        source = cell.source
        words = (_slug(part) for part in (source.method, source.recipe, source.predictive))
        name = f"{'-'.join(words)}-{cell.split:02d}-{cell.key}.json"
        return self.folder / _slug(source.study) / _slug(cell.dataset) / name


class _Malformed(ValueError):
    """A file that is no record of the cell that its name says."""


def _read(path: Path, cell: Cell) -> Record:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        fields = dict(stored["record"])
        record = Record(**{**fields, "source": Source(**fields["source"])})
        found = stored["key"]
        numbers = [*record.measures.values(), record.networks, record.seconds]
        lines = [value for line in record.curves.values() for value in line]
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise _Malformed(f"{path} must hold a record, got {error}.") from error
    if found != cell.key or not all(isinstance(value, int | float) for value in numbers + lines):
        raise _Malformed(f"{path} must answer {cell.key} with numbers, got {found!r}.")
    return record


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-") or "plain"


def _plain(value: Any) -> Any:
    """numpy's numbers and arrays as Python's, for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"records hold numbers, strings and lists of them, got {type(value).__name__}.")


_LONG = 400.0  # seconds after which a stack is cut
_OWN_SECONDS = 20.0  # of a split that a group's own function answers


@dataclass(frozen=True)
class Stack:
    """The unit of work: one group of models on one dataset, several splits together.

    ``code`` is the digest of the code that the run was started with.
    """

    group: Group
    dataset: str
    splits: tuple[int, ...]
    code: str

    @property
    def label(self) -> str:
        first, last = self.splits[0], self.splits[-1]
        splits = f"split {first}" if first == last else f"splits {first}–{last}"
        return f"{self.group.study} · {self.dataset} · {self.group.name} · {splits}"

    @property
    def cost(self) -> float:
        """Roughly the seconds it takes; only their proportions matter."""
        if self.group.answered_by is not None:
            return _OWN_SECONDS * len(self.splits)
        return sum(_cost(model, self.dataset, len(self.splits)) for model in self.group.models)


def stacks_of(studies: Sequence[Study], *, quick: bool) -> list[Stack]:
    """All stacks of the studies, each once, also where several studies read it.

    Sets that only a user's own folder can hold are left out where it does not.
    """
    wanted: dict[tuple[str, str, str], list[Stack]] = {}
    for group in (group for study in studies for group in study.groups):
        for dataset in filter(sets.is_there, group.protocol.datasets):
            place = (group.study, group.name, dataset)
            wanted.setdefault(place, _stacks_on(group, dataset, quick))
    return [stack for stacks in wanted.values() for stack in stacks]


def _stacks_on(group: Group, dataset: str, quick: bool) -> list[Stack]:
    """The quick protocol's splits are a stack of their own, so that its records serve the full one.

    Where the first split chooses for the others, all are one stack.
    """
    n_splits = group.n_splits(dataset, quick=quick)
    first = min(n_splits, group.n_splits(dataset, quick=True))
    if any(model.chosen_once for model in group.models):
        first = n_splits
    code = _code(group)
    if group.answered_by is not None:  # nothing is trained together
        return [Stack(group, dataset, (split,), code) for split in range(n_splits)]
    stacks = [Stack(group, dataset, tuple(range(first)), code)] if first else []
    if first < n_splits:
        stacks += _cut(Stack(group, dataset, tuple(range(first, n_splits)), code))
    return stacks


def _code(group: Group) -> str:
    return code_digest(__name__ if group.answered_by is None else group.answered_by.__module__)


def _cut(stack: Stack) -> list[Stack]:
    """Parts of a few splits each, as long as training them separately costs little more.

    A stop then never loses more than some minutes.
    """
    alone = replace(stack, splits=stack.splits[:1])
    if stack.cost <= _LONG or alone.cost * len(stack.splits) > 1.2 * stack.cost:
        return [stack]
    size = max(1, int(_LONG / alone.cost))
    starts = range(0, len(stack.splits), size)
    return [replace(stack, splits=stack.splits[start : start + size]) for start in starts]


def cells_of(stack: Stack) -> Iterator[tuple[StudyModel, Predictive, Cell]]:
    """The questions that a stack answers, each with the model and the predictive that answer it."""
    group = stack.group
    data = sets.digests(stack.dataset)
    for model in group.models:
        for predictive in model.predictives:
            settings = {
                "estimator": model.estimator,
                "settings": model.settings_on(stack.dataset),
                "chosen_once": model.chosen_once,
                "held_out": model.held_out,
                "predictive": dict(predictive.settings),
                "recalibration": predictive.recalibration,
                "scheme": group.protocol.scheme,
                "predictions": group.protocol.keep_predictions,
                "together": stack.splits,
                "data": data,
                "code": stack.code,
            }
            source = Source(group.study, model.method, model.recipe, predictive.name)
            for split in stack.splits:
                yield model, predictive, Cell(source, stack.dataset, split, settings)


def missing(stacks: Iterable[Stack], store: RecordStore) -> tuple[list[Stack], list[Path]]:
    """Stacks that lack a record, longest first, and the malformed files that were set aside.

    The longest come first so that the last ones, which run while other cores idle, are short.
    """
    left: list[Stack] = []
    aside: list[Path] = []
    for stack in stacks:
        absent = [cell for _, _, cell in cells_of(stack) if store.get(cell) is None]
        aside += [path for cell in absent if (path := store.set_aside(cell)) is not None]
        if absent:
            left.append(stack)
    return sorted(left, key=lambda stack: -stack.cost), aside


def records_of(stacks: Iterable[Stack], store: RecordStore) -> list[Record]:
    """The records of these stacks, and of no other settings, as far as they exist."""
    found = (store.get(cell) for stack in stacks for _, _, cell in cells_of(stack))
    return [record for record in found if record is not None]


def run_stack(stack: Stack, store: RecordStore) -> None:
    """Train all models of a stack on all its splits together, and record each predictive."""
    start, counter = time.process_time(), _Counter(stack)
    work = stack.group.answered_by
    answers = _trained(stack, store, counter) if work is None else _answered(stack, work)
    seconds = time.process_time() - start
    for number, (cell, answer) in enumerate(answers):
        record = Record(
            cell.source,
            cell.dataset,
            cell.split,
            dict(answer.measures),
            {name: curve.tolist() for name, curve in answer.curves.items()},
            dict(answer.notes),
            # the stack is one training: its networks are counted once, its time is shared out
            counter.networks if number == 0 else 0,
            seconds / len(answers),
        )
        store.put(cell, record)


def _answered(stack: Stack, work: Work) -> list[tuple[Cell, Answer]]:
    """What the group's own function says of each split."""
    found = {split: work(stack.group.name, stack.dataset, split) for split in stack.splits}
    return [
        (cell, found[cell.split][cell.source.method, cell.source.recipe])
        for _, _, cell in cells_of(stack)
    ]


class _Counter:
    """Counts networks as their training begins; those trained only for a choice count as well."""

    def __init__(self, stack: Stack) -> None:
        self.networks = 0
        self._epochs = max(int(model.settings.get("epochs", 1)) for model in stack.group.models)

    def __call__(self, progress: EpochReport) -> None:
        # A training cut into slices reports their epochs as of one long run.
        if (progress.epoch - 1) % self._epochs == 0:
            self.networks += progress.n_members


def _trained(stack: Stack, store: RecordStore, counter: _Counter) -> list[tuple[Cell, Answer]]:
    protocol, models = stack.group.protocol, stack.group.models
    parts = {fold.split: fold for fold in folds(stack.dataset, protocol.scheme, stack.splits)}
    chosen = {id(model): _chosen(model, stack, store, counter) for model in models}
    places = [(model, split) for model in models for split in stack.splits]
    fitted = estimators.fit_together(
        [_job(model, stack.dataset, parts[split], chosen[id(model)]) for model, split in places],
        listener=counter,
    )
    by_place = {
        (id(model), split): estimator
        for (model, split), estimator in zip(places, fitted, strict=True)
    }
    answers = []
    for model, predictive, cell in cells_of(stack):
        estimator = by_place[id(model), cell.split].set_params(**predictive.settings)
        fold = parts[cell.split]
        dist = _recalibrated(estimator, model, predictive, fold).predict_dist(fold.X_test)
        lines = curves(fold, dist, predictions=protocol.keep_predictions)
        answers.append((cell, Answer(measures(fold, dist), lines, _notes(model, estimator))))
    return answers


def _job(model: StudyModel, dataset: str, fold: Fold, chosen: Mapping[str, Any]) -> tuple[Any, ...]:
    """The model's estimator with its rows; the split's number is its seed."""
    kind = getattr(estimators, model.estimator)
    settings = {**model.settings_on(dataset), **chosen}
    train, _ = _parted(model, fold)
    estimator = kind(**settings, random_state=fold.split)
    return estimator, fold.X_train[train], fold.y_train[train]


def _parted(model: StudyModel, fold: Fold) -> tuple[Indices, Indices]:
    """The rows to train on, and those that the model holds out."""
    n = len(fold.y_train)
    order = np.arange(n)
    if model.held_out:
        order = np.random.default_rng(fold.split).permutation(n)
    n_train = n - round(model.held_out * n)
    return np.sort(order[:n_train]), np.sort(order[n_train:])


def _recalibrated(estimator: Any, model: StudyModel, predictive: Predictive, fold: Fold) -> Any:
    """The trained model as it is, or recalibrated on the rows that it holds out."""
    if predictive.recalibration is None:
        return estimator
    _, rows = _parted(model, fold)
    around = Recalibrated(
        estimator, method=predictive.recalibration, cv="prefit", random_state=fold.split
    )
    return around.fit(fold.X_train[rows], fold.y_train[rows])


def _chosen(
    model: StudyModel, stack: Stack, store: RecordStore, counter: _Counter
) -> Mapping[str, Any]:
    """What the first split chose, for all of them: from its record, or by fitting it.

    The first split alone is simply fitted, and chooses on the way.
    """
    if not model.chosen_once or stack.splits == (0,):
        return {}
    for own, _, cell in cells_of(stack):
        if own is model and cell.split == 0 and (record := store.get(cell)) is not None:
            return {name: record.notes[name] for name in model.chosen_once}
    [first] = folds(stack.dataset, stack.group.protocol.scheme, [0])
    [estimator] = estimators.fit_together([_job(model, stack.dataset, first, {})], listener=counter)
    return {name: getattr(estimator, f"{name}_") for name in model.chosen_once}


def _notes(model: StudyModel, estimator: Any) -> dict[str, Any]:
    """What the estimator chose for itself, and how often a network had to be started again."""
    notes = {name: getattr(estimator, f"{name}_") for name in model.chosen_once}
    if (tolerance := getattr(estimator, "tolerance_", None)) is not None:
        notes["tolerance"] = tolerance
    if (restarts := getattr(estimator, "n_restarts_", None)) is not None and restarts.any():
        notes["restarts"] = int(restarts.sum())
    return notes


def _cost(model: StudyModel, dataset: str, n_splits: int) -> float:
    """Steps × (fixed part + part per network); the constants were measured on one slow core."""
    settings, n = model.settings_on(dataset), info(dataset).n
    epochs, batch = int(settings.get("epochs", 1)), int(settings.get("batch_size", 32))
    if model.estimator == "PBPRegressor":
        return 3.5e-4 * epochs * n  # one row at a time, all splits at once
    searched = _SEARCHED if model.chosen_once else 0
    networks = n_splits * int(settings.get("n_members", 1)) * _candidates(settings, n) + searched
    width = int(sum(settings.get("hidden", ())))
    steps = epochs * ceil(0.9 * n / batch)
    return steps * (2.5e-4 + networks * (4e-6 + 5e-9 * batch * width))


_SEARCHED = 33  # networks that MC-dropout's search trains
_FEW = 100  # rows, below which a tolerance is not chosen
_GRID = 7  # constant tolerances that a search trains


def _candidates(settings: dict[str, Any], n: int) -> int:
    """How many ensembles a choice of tolerance takes: those of the inner splits, the final one."""
    per_split = {"local": 1, "validate": _GRID, "robust": _GRID}.get(settings.get("tolerance", ""))
    if per_split is None or n < _FEW:
        return 1
    return 1 + per_split * (6 if n < 3_000 else 4 if n < 20_000 else 2)
