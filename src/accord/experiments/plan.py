"""Which stacks of networks a reproduction has to train, and which records each will leave."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

from accord.datasets import info
from accord.experiments.descriptions import Model, Reading, Study
from accord.experiments.records import Cell, RecordStore

__all__ = ["Outcome", "Stack", "cells_of", "missing", "stacks_of"]


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
        return f"{self.study.name} · {self.dataset} · {self.group}"

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
                splits = tuple(range(source.n_splits(dataset, quick=quick)))
                for group in groups:
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

    The dearest come first so that the last ones, which run while other cores idle, are short.
    """
    left = []
    for stack in stacks:
        absent = {cell.split for _, _, cell in cells_of(stack) if store.get(cell) is None}
        if absent:
            left.append(replace(stack, splits=tuple(sorted(absent))))
    return sorted(left, key=lambda stack: -stack.cost)


def _cost(model: Model, dataset: str, n_splits: int) -> float:
    """Steps × (fixed part + part per network), in seconds measured once on two slow cores."""
    settings, entry = model.settings_on(dataset), info(dataset)
    batch, epochs = int(settings.get("batch_size", 32)), int(settings.get("epochs", 40))
    networks = n_splits * int(settings.get("n_members", 1)) * _choices(settings)
    width = int(sum(settings.get("hidden", (50,))))
    steps = epochs * ceil(0.9 * entry.n / batch)
    return steps * (4e-4 + networks * batch * width * (entry.d + 2) * 5e-10)


def _choices(settings: dict[str, object]) -> int:
    """How many times a network is trained to choose its tolerance."""
    return 20 if isinstance(settings.get("tolerance"), str) else 1
