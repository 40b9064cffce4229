"""Ensembles that choose nothing while they train: one task, one objective."""

from abc import abstractmethod
from typing import Any, Self

import torch
from numpy.typing import ArrayLike

from accord.ensemble import Scaling
from accord.estimators.network_ensemble import NetworkEnsembleRegressor, Rows
from accord.estimators.plans import Plan
from accord.training import Objective


class PlainEnsembleRegressor(NetworkEnsembleRegressor):
    """An ensemble whose members all minimise one loss on all rows; abstract."""

    @property
    @abstractmethod
    def _outputs_per_target(self) -> int:
        """Numbers that a network predicts for each target."""

    @abstractmethod
    def _objective(self) -> Objective:
        """The loss, after a check of the settings that only this estimator has."""

    @abstractmethod
    def _adversarial_step(self, rows: Rows, x_scaling: Scaling) -> torch.Tensor | None:
        """Fast-gradient-sign step per scaled feature, or None for plain training."""

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (N, d) and targets (N,) or (N, T), each row with its weight."""
        return self._train(self._plan(X, y, sample_weight=sample_weight))

    def _plan(  # type: ignore[override]
        self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> Plan:
        goes_on = self._continues()
        rows = self._rows(X, y, sample_weight, reset=not goes_on)
        objective = self._objective()
        scalings = x_scaling, y_scaling = self._scalings(rows, goes_on)
        seeds = self._seeds()
        task = self._task(
            x_scaling.scaled(rows.x),
            {"target": y_scaling.scaled(rows.y)},
            rows.weight,
            seeds,
            initial=self._kept_parameters(seeds) if goes_on else None,
            adversarial_step=self._adversarial_step(rows, x_scaling),
        )
        return Plan(
            [task],
            self._architecture(rows, self._outputs_per_target),
            objective,
            self._settings(),
            lambda trained: self._keep(trained[0], *scalings),
        )
