"""Distributions around the predictions of any model, learnt from its errors on held-out rows.

With ŷ(x) the model's prediction and e = y − ŷ(x) its errors on rows that it had not seen, small
networks learn the mean and the deviation of e at x. Together they are the scale of the errors,

    s(x)² = E[e | x]² + Var[e | x],

so that ŷ stays the centre: a bias of the model widens the prediction and does not move it.

Several models, one per fold, predict new rows by their mean, which errs less than each of them: by
their variance d² exactly, since mean_k (y − ŷ_k)² = (y − ŷ)² + d². Around each of them the scale
is therefore lowered to s² − 2 d², which with the models' own variance d² leaves s² − d².

The rest is what the portfolio does with its own models: calibration of s by a factor, a floor and
Student-t tails, a local tolerance away from the data, what a category or a number that is not known
costs, and intervals by rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.portfolio.blanks import Blank, Blanks, blanked, only_ones, rows_with, split_blanks
from accord.portfolio.blend import Member, Prediction, blend_of, greedy_weights
from accord.portfolio.components import Components, calibrated
from accord.portfolio.encoding import ScaledRows, TargetScale, resolution
from accord.portfolio.evidence import HeldOutEvidence
from accord.portfolio.folds import Part, shifted_parts
from accord.portfolio.local import (
    SHIFTED_ROWS,
    Widening,
    choose_tolerance,
    feature_weights,
    growth_at,
    growth_of,
)
from accord.portfolio.models import Model
from accord.portfolio.networks import NetworkModel
from accord.portfolio.recipes import NetworkRecipe
from accord.trust import Growth, Proximity

_RECIPES = (
    NetworkRecipe("line", "linear deviation", hidden=(), steps=600, learning_rate=1e-2, seeds=1),
    NetworkRecipe(
        "short", "two layers of 64, trained briefly", hidden=(64, 64), steps=600, seeds=1
    ),
)
# A prediction farther than this from the bulk of the targets, in their deviations, counts as
# lying there, so that every answer is finite.
_FARTHEST = 1e6

# Of a variance s² at least this share is left where the models differ: d² is known roughly.
_LEFT = 0.25

# For a part: the model trained on its train rows predicts its test rows, (n,).
FitAgain = Callable[[Part], Floats]
# For some rows and a fold: its model predicts them with these columns unknown, (n,).
WithoutValues = Callable[[Indices, int, Sequence[Blank]], Floats]


@dataclass(frozen=True)
class HeldOutRows:
    """Rows with what a model that had not seen them predicted.

    ``parts`` are the folds; ``changes`` says how much predictions change with each feature.

    **Shape**: x (N, d); y and mean (N,); changes (d,).
    """

    x: Floats
    y: Floats
    mean: Floats
    parts: Sequence[Part]
    changes: Floats


@final
class Residuals:
    """The errors of a model, as distributions around its predictions.

    Attributes:
        members_: Networks for the scale of errors, calibrated and weighed.
        widening_: What makes predictions wider away from the held-out rows.
    """

    widening_: Widening

    def fit(
        self,
        rows: HeldOutRows,
        *,
        fit_again: FitAgain | None,
        blanks: Sequence[Blank],
        without_values: WithoutValues,
        seed: int,
    ) -> Self:
        """Learn from held-out rows.

        Without ``fit_again``, which trains the model without the rows that are unlike the rest, the
        local tolerance is the usual one. ``without_values`` asks the model about rows with some of
        the ``blanks``.
        """
        self.scale_ = TargetScale.of(rows.y)
        self.rounding_ = resolution(rows.y) / 2
        self.range_ = float(rows.y.min()), float(rows.y.max())
        error = rows.y - self._finite(rows.mean)
        self.error_scale_ = float(np.sqrt(np.mean(np.square(error)))) or self.scale_.scale
        predictions = self._networks(rows, error, seed)
        self._widen(rows, error, predictions, fit_again, seed)

        def evidence(own: Indices, fold: int, put: Sequence[Blank]) -> HeldOutEvidence:
            x, mean = blanked(rows.x[own], put), without_values(own, fold, put)
            return self._evidence(
                [member.model for member in self.members_],
                self.widening_.growth,
                (x, rows.y[own], mean),
                fold,
            )

        blanks, watched = split_blanks(rows.x, blanks)
        self.widening_ = self.widening_.with_blanks(
            blanks,
            rows_with(rows.x, blanks),
            rows.changes,
            rows.parts,
            evidence,
            watched=watched,
            alone=only_ones(rows.x, rows.parts) if watched else (),
            seed=seed,
        )
        return self

    def answer(
        self, x: Floats, means: Floats, *, as_known: bool = False
    ) -> tuple[Distribution, Bools]:
        """Distributions around predictions, and which rows are unusual.

        ``as_known`` does not widen them for features that say nothing.

        **Shape**: x (n, d); means (S, n), by the models of S folds or by one → (n,) each.
        """
        predictions = [
            Prediction.of(member, self._components(member.model, x, means), self.scale_)
            for member in self.members_
        ]
        growth = self.widening_.growth
        values = growth.cut_off(x)
        grown = self._grown(growth, values, means.mean(axis=0))
        dist = self.widening_.answer(predictions, x, grown, as_known=as_known)
        return dist, self.widening_.is_unusual(values, x)

    @property
    def proximity_(self) -> Proximity:
        return self.widening_.growth.proximity_

    @property
    def blanks_(self) -> Blanks:
        return self.widening_.blanks

    def _finite(self, mean: Floats) -> Floats:
        """Predictions that are numbers, none of them absurdly far out."""
        center, far = self.scale_.center, _FARTHEST * self.scale_.scale
        known = np.nan_to_num(mean, nan=center, posinf=np.inf, neginf=-np.inf)
        return np.clip(known, center - far, center + far)

    def _grown(self, growth: Growth, values: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """h, and what is added beyond all evidence: rows beyond the rows, targets beyond targets.

        A prediction outside the range of the targets may be wrong by as much as it lies outside.
        """
        grown, beyond = growth_at(growth, values)
        known = self._finite(mean)
        outside = np.abs(known - np.clip(known, *self.range_))
        return grown, beyond + outside / self.scale_.scale

    def _inputs(self, x: Floats, mean: Floats) -> Floats:
        """Features of the networks: those of the row, and what is predicted for it."""
        return np.column_stack([x, self.scale_.scaled(self._finite(mean))])

    def _components(
        self, model: Model, x: Floats, means: Floats, fold: int | None = None
    ) -> Components:
        """Each fold's prediction with its own network's scale, or one prediction with all."""
        inputs = self._inputs(x, means.mean(axis=0))
        found = model.components(inputs, fold)
        square = np.square(found.mean) + np.square(found.std)
        square *= (self.error_scale_ / self.scale_.scale) ** 2
        center = self.scale_.scaled(self._finite(means))[:, :, None]
        lowered = np.maximum(square - 2 * center.var(axis=0), _LEFT * square)
        return Components(found.weight, np.broadcast_to(center, found.mean.shape), np.sqrt(lowered))

    def _networks(self, rows: HeldOutRows, error: Floats, seed: int) -> list[Prediction]:
        """Train, calibrate and weigh; sets ``members_``."""
        z, weight = self.scale_.scaled(rows.y), np.ones(len(rows.y))
        eps = self.rounding_ / self.scale_.scale
        found, density = [], []
        for recipe in _RECIPES:
            model = NetworkModel(recipe).fit(
                self._scaled(rows, error), [p.train for p in rows.parts], seed=seed, listener=None
            )
            own = [part.test for part in rows.parts]
            pieces = [
                self._components(model, rows.x[test], rows.mean[None, test], fold)
                for fold, test in enumerate(own)
            ]
            held_out = Components.assembled(pieces, own)
            calibration = calibrated(held_out, z, weight, tolerance_variance=eps**2 / 3)
            density.append(calibration.log_density(held_out, z))
            found.append((Member(recipe.name, model, self.scale_, calibration, 1.0), held_out))
        weights = greedy_weights(np.stack(density), weight)
        all_rows = np.arange(len(rows.y))
        predictions = blend_of(
            found, weights, self.scale_, y=rows.y, row_weight=weight, some=all_rows
        )
        self.members_ = [prediction.member for prediction in predictions]
        return predictions

    def _scaled(self, rows: HeldOutRows, error: Floats) -> ScaledRows:
        inputs = self._inputs(rows.x, rows.mean)
        return ScaledRows(inputs, error / self.error_scale_, np.ones(len(error)), {})

    def _widen(
        self,
        rows: HeldOutRows,
        error: Floats,
        predictions: list[Prediction],
        fit_again: FitAgain | None,
        seed: int,
    ) -> None:
        """Sets what widens predictions away from the data, and the levels of intervals."""
        self.feature_weight_ = feature_weights(rows.changes)
        growth = growth_of(rows.x, rows.y, self.feature_weight_)
        usual = HeldOutEvidence(
            predictions,
            rows.y,
            np.ones(len(rows.y)),
            *self._grown(growth, growth.leave_one_out(), rows.mean),
        )
        shifted = [] if fit_again is None else self._shifted(rows, error, fit_again, seed)
        tolerance = choose_tolerance(usual, shifted, seed=seed)
        rehearsed = [np.empty(0), *(part.needed(tolerance) for part in shifted)]
        self.widening_ = Widening(
            growth,
            tolerance,
            np.sort(usual.needed(tolerance)),
            np.sort(np.concatenate(rehearsed)),
            self.scale_.scale,
        )

    def _shifted(
        self, rows: HeldOutRows, error: Floats, fit_again: FitAgain, seed: int
    ) -> list[HeldOutEvidence]:
        """Parts unlike the rest, by a model and networks that had seen none of them."""
        if len(rows.y) < SHIFTED_ROWS:
            return []
        parts = shifted_parts(rows.x, rows.changes, seed=seed)
        means = [fit_again(part) for part in parts]
        scaled, trains = self._scaled(rows, error), [part.train for part in parts]
        models = [
            member.model.fit_again(scaled, trains, seed=seed, listener=None)
            for member in self.members_
        ]
        return [
            self._evidence(
                models,
                growth_of(rows.x[part.train], rows.y[part.train], self.feature_weight_),
                (rows.x[part.test], rows.y[part.test], mean),
                fold,
            )
            for fold, (part, mean) in enumerate(zip(parts, means, strict=True))
        ]

    def _evidence(
        self,
        models: Sequence[Model],
        growth: Growth,
        rows: tuple[Floats, Floats, Floats],
        fold: int,
    ) -> HeldOutEvidence:
        """Rows, as features, targets and predictions, with the scales of one fold's networks."""
        x, y, mean = rows
        predictions = [
            Prediction.of(member, self._components(model, x, mean[None], fold), self.scale_)
            for member, model in zip(self.members_, models, strict=True)
        ]
        return HeldOutEvidence(
            predictions, y, np.ones(len(y)), *self._grown(growth, growth(x), mean)
        )
