"""All methods on the same splits of a table."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accord.estimators import fit_together
from accord.splits import OutlierSplit
from accord.tables import (
    OptionError,
    TrainingData,
    listed,
    make_preprocessor,
    near_matches,
    prepare_training,
    quoted,
    read_table,
)
from accord.workflows.assessment import Assessment
from accord.workflows.comparison import CompareResult, MethodScore, SplitKind
from accord.workflows.methods import METHODS, Method
from accord.workflows.progress import Progress, Silent
from accord.workflows.training import Split, share_of_epochs

_TEST_SHARE = 0.1


def compare_methods(
    table: str | Path | pd.DataFrame,
    *,
    target: str,
    n_splits: int = 3,
    methods: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    coverage: float = 0.95,
    seed: int = 0,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> CompareResult:
    """Train every method on the same random splits and on as many outlier splits.

    All see the same preprocessed features and use their own default settings; none is recalibrated.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    chosen = _chosen(methods)
    present = [method for method in chosen if method.installed]
    progress.plan(float(len(present)))
    progress.stage("Reading", weight=0.0)
    source = read_table(table, encoding=encoding)
    data = prepare_training(source, target=target, ignore=ignore)
    folds = _prepared(data, _splits(data, n_splits, seed), seed)
    scores: list[MethodScore] = []
    assessments: dict[tuple[str, SplitKind], Assessment] = {}
    for method in present:
        progress.stage(method.name, weight=1.0)
        found, seconds = _run(method, folds, data, coverage, seed, progress)
        for kind, parts in found.items():
            scores.append(MethodScore.of(method.name, kind, parts, seconds=seconds))
            assessments[method.name, kind] = Assessment.join(parts)
    return CompareResult(
        source=source.name,
        target=target,
        n_rows=len(data.y),
        scores=tuple(scores),
        assessments=assessments,
        about={method.name: method.about for method in present},
        absent=tuple(method.name for method in chosen if not method.installed),
        notes=data.notes,
        n_splits=n_splits,
        seconds=time.perf_counter() - start,
    )


def _chosen(names: Sequence[str] | None) -> list[Method]:
    if names is None:
        return list(METHODS)
    known = {method.name.casefold(): method for method in METHODS}
    unknown = [name for name in names if name.casefold() not in known]
    if unknown:
        near = near_matches(unknown[0], [method.name for method in METHODS])
        hint = f" Did you mean {' or '.join(map(quoted, near))}?" if near else ""
        raise OptionError(
            f"method must be one of {listed((m.name for m in METHODS), limit=20)}, got "
            f"{quoted(unknown[0])}.{hint}"
        )
    return [known[name.casefold()] for name in names]


def _splits(data: TrainingData, n_splits: int, seed: int) -> list[tuple[SplitKind, Split]]:
    n = len(data.y)
    size = max(2, round(_TEST_SHARE * n))
    splits: list[tuple[SplitKind, Split]] = []
    for place in range(n_splits):
        order = np.random.default_rng([seed, place]).permutation(n)
        splits.append(("random", Split(np.sort(order[size:]), np.sort(order[:size]))))
    features = make_preprocessor(data.schema, random_state=seed).fit_transform(data.X, data.y)
    outliers = OutlierSplit(n_splits, fraction=max(_TEST_SHARE, 2 / n), random_state=seed)
    for train, test in outliers.split(features):
        splits.append(("unusual", Split(train, test)))
    return splits


Fold = tuple[SplitKind, Split, Any, Any]


def _prepared(data: TrainingData, splits: list[tuple[SplitKind, Split]], seed: int) -> list[Fold]:
    """Features of each split, preprocessed by what its training rows know."""
    folds = []
    for kind, split in splits:
        pipeline = make_preprocessor(data.schema, random_state=seed)
        train = pipeline.fit_transform(data.X.iloc[split.train], data.y[split.train])
        folds.append((kind, split, train, pipeline.transform(data.X.iloc[split.test])))
    return folds


def _run(
    method: Method,
    folds: list[Fold],
    data: TrainingData,
    coverage: float,
    seed: int,
    progress: Progress,
) -> tuple[dict[SplitKind, list[Assessment]], float]:
    start = time.perf_counter()
    jobs = [
        (method.make(seed + place), train, data.y[split.train])
        for place, (_, split, train, _) in enumerate(folds)
    ]
    widths = [train.shape[1] for _, _, train, _ in folds]
    fit_together(jobs, listener=share_of_epochs(widths, progress.advance))
    seconds = (time.perf_counter() - start) / len(folds)
    found: dict[SplitKind, list[Assessment]] = {}
    for (model, *_), (kind, split, _, test) in zip(jobs, folds, strict=True):
        assessment = Assessment.of(
            model.predict_dist(test),
            data.y[split.test],
            rows=data.rows[split.test],
            coverage=coverage,
        )
        found.setdefault(kind, []).append(assessment)
    return found, seconds
