"""Train many estimators as few stacks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accord.estimators.network_ensemble import NetworkEnsembleRegressor, Plan
from accord.estimators.pbp import PBPRegressor, fit_as_stack
from accord.training import Listener, train

Job = tuple[Any, ...]  # (estimator, X, y) or (estimator, X, y, fit options)


def fit_together(jobs: Iterable[Job], *, listener: Listener | None = None) -> list[Any]:
    """Fit estimators, each on its own data, training equal networks as one stack.

    A job is ``(estimator, X, y)`` or ``(estimator, X, y, fit_options)``. Estimators whose networks,
    loss and training settings are the same share a stack, whatever their data and seeds; the result
    is that of fitting them one by one, to rounding. Others are simply fitted.

    >>> import numpy as np
    >>> from accord.estimators import DeepEnsembleRegressor, fit_together
    >>> x = np.linspace(0, 1, 64)[:, None]
    >>> jobs = [(DeepEnsembleRegressor(random_state=s, epochs=2), x, x[:, 0]) for s in range(3)]
    >>> len(fit_together(jobs))
    3
    """
    estimators, plans, filters = [], [], []
    for estimator, X, y, *options in jobs:
        fit_options: Mapping[str, Any] = options[0] if options else {}
        estimators.append(estimator)
        if isinstance(estimator, NetworkEnsembleRegressor):
            plans.append(estimator._plan(X, y, **fit_options))
        elif isinstance(estimator, PBPRegressor) and not fit_options:
            filters.append((estimator, X, y))
        else:
            estimator.fit(X, y, **fit_options)
    fit_as_stack(filters, listener)
    for group in _groups(plans):
        tasks = [task for plan in group for task in plan.tasks]
        first = group[0]
        trained = iter(
            train(tasks, first.architecture, first.objective, first.settings, listener=listener)
        )
        for plan in group:
            plan.finish([next(trained) for _ in plan.tasks])
    return estimators


def _groups(plans: Sequence[Plan]) -> list[list[Plan]]:
    groups: list[list[Plan]] = []
    for plan in plans:
        for group in groups:
            if _alike(plan, group[0]):
                group.append(plan)
                break
        else:
            groups.append([plan])
    return groups


def _alike(one: Plan, other: Plan) -> bool:
    return (
        one.architecture == other.architecture
        and one.objective == other.objective
        and one.settings == other.settings
        and list(one.tasks[0].columns) == list(other.tasks[0].columns)
        and (one.tasks[0].adversarial_step is None) == (other.tasks[0].adversarial_step is None)
    )
