"""Train many estimators as few stacks."""

from collections.abc import Iterable, Mapping
from typing import Any

from accord.estimators.ensemble import NetworkEnsembleRegressor, carry_out
from accord.estimators.pbp import PBPRegressor, fit_as_stack
from accord.training import Listener

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
    carry_out(plans, listener=listener)
    return estimators
