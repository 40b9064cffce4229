"""Which stacks of networks a reproduction has to train, and which records each will leave."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from accord.datasets import info
from accord.estimators.tolerance import MIN_ROWS
from accord.experiments.descriptions import Model, Reading, Study
from accord.experiments.records import Cell, RecordStore

__all__ = ["Outcome", "Stack", "cells_of", "missing", "stacks_of"]

_LONG = 400.0  # seconds after which a stack is cut


@dataclass(frozen=True)
class Stack:
    """The unit of work: one group of a study's models on one dataset, all its splits together.

    ``code`` is the fingerprint of the code that the run was started with.
    """

    study: Study
    dataset: str
    group: str
    splits: tuple[int, ...]
    code: str

    @property
    def models(self) -> tuple[Model, ...]:
        return tuple(model for model in self.study.models if model.group == self.group)

    @property
    def label(self) -> str:
        first, last = self.splits[0], self.splits[-1]
        splits = f"split {first}" if first == last else f"splits {first}–{last}"
        return f"{self.study.name} · {self.dataset} · {self.group} · {splits}"

    @property
    def cost(self) -> float:
        """Roughly the seconds it takes; only their proportions matter."""
        return sum(_cost(model, self.dataset, len(self.splits)) for model in self.models)


@dataclass(frozen=True)
class Outcome:
    """What a stack cost."""

    seconds: float
    networks: int


def stacks_of(
    studies: Sequence[Study], every: Sequence[Study], *, quick: bool, code: str
) -> list[Stack]:
    """All stacks of the studies, with those they share from others, each once."""
    by_name = {study.name: study for study in every}
    wanted: dict[tuple[str, str, str], Stack] = {}
    for study in studies:
        sources = [(study, study.groups)]
        sources += [(by_name[shared.study], shared.groups) for shared in study.shares]
        for source, groups in sources:
            for dataset in source.datasets:
                for group in groups:
                    splits = tuple(range(source.n_splits(dataset, group, quick=quick)))
                    if splits:
                        stack = Stack(source, dataset, group, splits, code)
                        wanted.setdefault((source.name, dataset, group), stack)
    return list(wanted.values())


def cells_of(stack: Stack) -> Iterator[tuple[Model, Reading, Cell]]:
    """The questions that a stack answers, each with the model and the reading that answer it."""
    data = [file.sha256 for file in info(stack.dataset).files]
    for model in stack.models:
        for reading in model.readings:
            settings = {
                "estimator": model.estimator,
                "settings": model.settings_on(stack.dataset),
                "fit_options": dict(model.fit_options),
                "keeps": model.keeps,
                "reading": dict(reading.settings),
                "scheme": stack.study.scheme,
                "predictions": stack.study.keep_predictions,
                "data": data,
                "code": stack.code,
            }
            for split in stack.splits:
                yield (
                    model,
                    reading,
                    Cell(
                        stack.study.name,
                        stack.dataset,
                        model.method,
                        reading.variant,
                        split,
                        settings,
                    ),
                )


def missing(stacks: Iterable[Stack], store: RecordStore) -> list[Stack]:
    """What is left to do: stacks reduced to the splits that lack a record, dearest first.

    The dearest come first so that the last ones, which run while other cores idle, are short; very
    dear ones are cut, so that a stop never loses more than some minutes.
    """
    left: list[Stack] = []
    for stack in stacks:
        absent = {cell.split for _, _, cell in cells_of(stack) if store.get(cell) is None}
        if absent:
            left += _cut(replace(stack, splits=tuple(sorted(absent))))
    return sorted(left, key=lambda stack: -stack.cost)


def _cut(stack: Stack) -> list[Stack]:
    """Parts of a few splits each, as long as training them apart costs little more."""
    kept = any(model.keeps for model in stack.models)  # the first split chooses for the others
    alone = replace(stack, splits=stack.splits[:1])
    if stack.cost <= _LONG or kept or alone.cost * len(stack.splits) > 1.2 * stack.cost:
        return [stack]
    size = max(1, int(_LONG / alone.cost))
    starts = range(0, len(stack.splits), size)
    return [replace(stack, splits=stack.splits[start : start + size]) for start in starts]


def _cost(model: Model, dataset: str, n_splits: int) -> float:
    """Steps × (fixed part + part per network); the constants were measured on one slow core."""
    settings, n = model.settings_on(dataset), info(dataset).n
    epochs, batch = int(settings.get("epochs", 1)), int(settings.get("batch_size", 32))
    if model.estimator == "PBPRegressor":
        return 3.5e-4 * epochs * n  # one row at a time, all splits at once
    searched = _GRID if model.keeps else 0
    networks = n_splits * int(settings.get("n_members", 1)) * _candidates(settings, n) + searched
    width = int(sum(settings.get("hidden", ())))
    steps = epochs * ceil(0.9 * n / batch)
    return steps * (2.5e-4 + networks * (4e-6 + 5e-9 * batch * width))


_GRID = 33


def _candidates(settings: dict[str, Any], n: int) -> int:
    """How many ensembles a local tolerance takes: one per inner split, and the final one."""
    if settings.get("tolerance") != "local" or n < MIN_ROWS:
        return 1
    return 7 if n < 3_000 else 5 if n < 20_000 else 3
