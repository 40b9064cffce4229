"""One stack of networks, from data to records."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from accord import estimators
from accord.experiments.descriptions import Model
from accord.experiments.expansion import checked
from accord.experiments.folds import Fold, folds
from accord.experiments.measures import curves, measures
from accord.experiments.plan import Outcome, Stack, cells_of
from accord.experiments.records import Cell, Record, RecordStore
from accord.training import EpochReport

__all__ = ["run_stack"]


@dataclass(frozen=True)
class _Answer:
    cell: Cell
    scores: Mapping[str, float]
    lines: Mapping[str, Any]
    notes: Mapping[str, Any]


def run_stack(stack: Stack, store: RecordStore) -> Outcome:
    """Train all models of a stack on all its splits together, and record every reading of them."""
    start, started_cpu, counter = time.perf_counter(), time.process_time(), _Counter(stack)
    if stack.study.scheme == "formula":
        answers = _formula(stack)
    else:
        answers = _trained(stack, store, counter)
    seconds = time.process_time() - started_cpu
    for number, answer in enumerate(answers):
        cell = answer.cell
        record = Record(
            cell.study,
            cell.dataset,
            cell.method,
            cell.variant,
            cell.split,
            dict(answer.scores),
            dict(answer.lines),
            dict(answer.notes),
            # the stack is one training: its networks are counted once, its time is shared out
            counter.networks if number == 0 else 0,
            seconds / len(answers),
        )
        store.put(cell, record)
    return Outcome(time.perf_counter() - start, counter.networks)


class _Counter:
    """Counts networks as their training begins; those trained only for a choice count as well."""

    def __init__(self, stack: Stack) -> None:
        self.networks = 0
        self._epochs = max(int(model.settings.get("epochs", 1)) for model in stack.models)

    def __call__(self, progress: EpochReport) -> None:
        # A training cut into slices reports their epochs as of one long run.
        if (progress.epoch - 1) % self._epochs == 0:
            self.networks += progress.n_members


def _formula(stack: Stack) -> list[_Answer]:
    scores, lines = checked()
    return [_Answer(cell, scores, lines, {}) for _, _, cell in cells_of(stack)]


def _trained(stack: Stack, store: RecordStore, counter: _Counter) -> list[_Answer]:
    parts = {fold.split: fold for fold in folds(stack.dataset, stack.study.scheme, stack.splits)}
    kept = {model.method: _kept(model, stack, store, counter) for model in stack.models}
    places = [(model, split) for model in stack.models for split in stack.splits]
    fitted = estimators.fit_together(
        [_job(model, stack.dataset, parts[split], kept[model.method]) for model, split in places],
        listener=counter,
    )
    by_place = {
        (model.method, split): estimator
        for (model, split), estimator in zip(places, fitted, strict=True)
    }
    answers = []
    for model, reading, cell in cells_of(stack):
        estimator = by_place[model.method, cell.split].set_params(**reading.settings)
        fold = parts[cell.split]
        dist = estimator.predict_dist(fold.X_test)
        lines = curves(fold, dist, predictions=stack.study.keep_predictions)
        answers.append(_Answer(cell, measures(fold, dist), lines, _notes(model, estimator)))
    return answers


def _job(model: Model, dataset: str, fold: Fold, kept: Mapping[str, Any]) -> tuple[Any, ...]:
    """The model's estimator with its rows; the split's number is its seed."""
    kind = getattr(estimators, model.estimator)
    estimator = kind(**{**model.settings_on(dataset), **kept}, random_state=fold.split)
    return estimator, fold.X_train, fold.y_train, model.fit_options


def _kept(model: Model, stack: Stack, store: RecordStore, counter: _Counter) -> Mapping[str, Any]:
    """What the first split chose, for all of them: from its record, or by fitting it.

    The first split alone is simply fitted, and chooses on the way.
    """
    if not model.keeps or stack.splits == (0,):
        return {}
    for own, _, cell in cells_of(replace(stack, splits=(0,))):
        if own is model and (record := store.get(cell)) is not None:
            return {name: record.notes[name] for name in model.keeps}
    [first] = folds(stack.dataset, stack.study.scheme, [0])
    [estimator] = estimators.fit_together([_job(model, stack.dataset, first, {})], listener=counter)
    return {name: getattr(estimator, f"{name}_") for name in model.keeps}


def _notes(model: Model, estimator: Any) -> dict[str, Any]:
    """What the estimator chose for itself, and how often a network had to be started again."""
    notes = {name: getattr(estimator, f"{name}_") for name in model.keeps}
    if (tolerance := getattr(estimator, "tolerance_", None)) is not None:
        notes["tolerance"] = tolerance
    if (restarts := getattr(estimator, "n_restarts_", None)) is not None and restarts.any():
        notes["restarts"] = int(restarts.sum())
    return notes
