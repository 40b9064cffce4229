"""An exact Gaussian process for small tables: what a smooth function with few rows is best met by.

Its kernel is learnt on a subset of the rows (:mod:`accord.portfolio.covariance`); every fold then
conditions on all of its rows, by one inverse for all folds. scikit-learn's regressor optimises on
all rows, which costs minutes where this takes seconds, and its fitted state is no plain array.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self, final

import numpy as np
from scipy.linalg import blas

from accord._types import Floats, Indices
from accord.portfolio.components import Components
from accord.portfolio.covariance import CHUNK, Covariance, inverse_factor, n_lengths
from accord.portfolio.encoding import FeatureEncoding, ScaledRows, trained_on
from accord.portfolio.folds import at_most
from accord.portfolio.recipes import GaussianProcessRecipe
from accord.training import Listener

# With fewer rows, in all or for each length, a kernel that has seen those held out knows too much
# about them.
_ROWS_FOR_ONE_KERNEL, _ROWS_PER_LENGTH = 250, 15


@final
class GaussianProcess:
    """Posteriors of standardised targets, one per fold, with one kernel.

    What a fold may see are all rows but some, H, so that one inverse serves all folds. With the
    covariance LLᵀ = P⁻¹ of all targets z, α = Pz, and k, y = L⁻¹k, w = L⁻ᵀy for a new row,

        mean = kᵀ(α − P_·H P_HH⁻¹ α_H),    variance = a + s² − ‖y‖² + w_Hᵀ P_HH⁻¹ w_H,

    since the inverse of the covariance without the rows H is P − P_·H P_HH⁻¹ P_H· (Schur). P_HH⁻¹
    is what the other rows leave unknown of those. (‖y‖² is kᵀPk, which loses half of its digits.)

    Attributes:
        covariance_: The covariances of targets.
        rows_: The rows that any fold may see, (n, d).
        hidden_: Places of the rows that each fold may not see.
        weights_: What a mean multiplies covariances by, of each fold, (K, n).
    """

    def __init__(self, kernel: Covariance, x: Floats, z: Floats, folds: Sequence[Indices]) -> None:
        """A posterior for the rows that each fold may see. **Shape**: x (N, d), z (N,)."""
        used = np.unique(np.concatenate(folds))
        self.covariance_, self.rows_ = kernel, x[used]
        self.hidden_ = [np.flatnonzero(~np.isin(used, own)) for own in folds]
        self.weights_ = self._weights(z[used])

    def _weights(self, z: Floats) -> Floats:
        factor = self.factor
        every = factor.T @ (factor @ z)
        weights = np.tile(every, (len(self.hidden_), 1))
        for own, hidden, correction in zip(weights, self.hidden_, self.corrections, strict=True):
            own -= factor.T @ (factor[:, hidden] @ (correction.T @ (correction @ every[hidden])))
            own[hidden] = 0.0
        return weights

    @cached_property
    def factor(self) -> Floats:
        """L⁻¹. It is made again after loading, in less time than it would take to read."""
        return self.covariance_.inverse_factor(self.rows_)

    @cached_property
    def corrections(self) -> list[Floats]:
        """C with CᵀC = P_HH⁻¹, for each fold."""
        parts = [self.factor[:, hidden] for hidden in self.hidden_]
        return [inverse_factor(own.T @ own) for own in parts]

    def forget(self) -> None:
        """Free the memory of what is made again when it is asked for."""
        for name in ("factor", "corrections"):
            vars(self).pop(name, None)

    def means(self, x: Floats, fold: int | None = None) -> Floats:
        """The mean of one fold's posterior, or of all; it takes no inverse.

        **Shape**: x (N, d) → (F, N).
        """
        weights = self.weights_ if fold is None else self.weights_[[fold]]
        starts = range(0, max(len(x), 1), CHUNK)
        parts = [
            weights @ self.covariance_(self.rows_, x[start : start + CHUNK]) for start in starts
        ]
        return np.concatenate(parts, axis=1)

    def predict(self, x: Floats, fold: int | None = None) -> tuple[Floats, Floats]:
        """Mean and standard deviation, noise included, of one fold's posterior or of all.

        **Shape**: x (N, d) → (F, N) each.
        """
        folds = range(len(self.hidden_)) if fold is None else [fold]
        sees_all = not any(len(self.hidden_[number]) for number in folds)
        mean, variance = np.empty((2, len(folds), len(x)))
        for start in range(0, len(x), CHUNK):
            own = slice(start, start + CHUNK)
            cross = self.covariance_(x[own], self.rows_)
            explained, solved = _solved(cross, self.factor, squares_only=sees_all)
            mean[:, own] = self.weights_[list(folds)] @ cross.T
            variance[:, own] = self.covariance_.amplitude + self.covariance_.noise - explained
            for place, number in enumerate(folds):
                unknown = solved[:, self.hidden_[number]] @ self.corrections[number].T
                variance[place, own] += np.einsum("ij,ij->i", unknown, unknown)
        return mean, np.sqrt(np.maximum(variance, 0.5 * self.covariance_.noise))

    def left_out(self, fold: int) -> tuple[Floats, Floats]:
        """What each row that a fold may see is beside the others' prediction, and its deviation.

        With Q the inverse of the fold's covariance, the errors are (Qz)_i / Q_ii, and the variances
        1 / Q_ii (Rasmussen and Williams, Gaussian Processes for Machine Learning, 5.4.2).

        **Shape**: (n,) each, of the rows that the fold may see, in order.
        """
        hidden, correction = self.hidden_[fold], self.corrections[fold]
        beside = self.factor.T @ self.factor[:, hidden]
        precision = np.einsum("ij,ij->j", self.factor, self.factor)
        precision -= np.square(beside @ correction.T).sum(axis=1)
        seen = np.delete(np.arange(len(self.rows_)), hidden)
        return self.weights_[fold, seen] / precision[seen], 1 / np.sqrt(precision[seen])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_")}


@final
class GaussianProcessModel:
    """An exact Gaussian process per fold; one kernel serves all folds where rows are many.

    Attributes:
        processes_: One for all folds, or one per fold with a kernel of its own.
    """

    def __init__(self, recipe: GaussianProcessRecipe) -> None:
        self.recipe = recipe

    def fit(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> Self:
        self.encoding_ = FeatureEncoding().fit(rows.x)
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        some = self._some(len(z), seed)
        folds = [np.intersect1d(own, some) for own in folds]
        if len(z) < max(_ROWS_FOR_ONE_KERNEL, _ROWS_PER_LENGTH * n_lengths(x.shape[1])):
            sharing = [[own] for own in folds]
        else:
            sharing = [list(folds)]
        self.processes_ = []
        for own in sharing:
            used = np.unique(np.concatenate(own))
            kernel = Covariance.learnt(x[used], z[used], kernels=self.recipe.kernels, seed=seed)
            self.processes_.append(GaussianProcess(kernel, x, z, own))
        return self

    def fit_again(
        self, rows: ScaledRows, folds: Sequence[Indices], *, seed: int, listener: Listener | None
    ) -> "GaussianProcessModel":
        return self._conditioned(self.recipe, [self.processes_[0].covariance_], rows, folds, seed)

    def of_fewer(
        self, most: int, rows: ScaledRows, folds: Sequence[Indices], *, seed: int
    ) -> "GaussianProcessModel":
        """These kernels, conditioned on at most so many rows of the same folds."""
        recipe = replace(self.recipe, rows=most)
        kernels = [process.covariance_ for process in self.processes_]
        return self._conditioned(recipe, kernels, rows, folds, seed)

    def _conditioned(
        self,
        recipe: GaussianProcessRecipe,
        kernels: Sequence[Covariance],
        rows: ScaledRows,
        folds: Sequence[Indices],
        seed: int,
    ) -> "GaussianProcessModel":
        """With one kernel for all folds, or one for each."""
        other = GaussianProcessModel(recipe)
        other.encoding_ = self.encoding_
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        some = other._some(len(z), seed)
        folds = [np.intersect1d(own, some) for own in folds]
        sharing = [folds] if len(kernels) == 1 else [[own] for own in folds]
        other.processes_ = [
            GaussianProcess(kernel, x, z, own) for kernel, own in zip(kernels, sharing, strict=True)
        ]
        return other

    def left_out(
        self, rows: ScaledRows, folds: Sequence[Indices], figure: Literal["mean", "std"], seed: int
    ) -> Floats:
        """A figure of the rows of each fold, each row predicted without itself.

        **Shape**: (K, N) for K folds; NaN where a fold may not see a row.
        """
        x, z = self.encoding_(rows.x), trained_on(rows.z)
        found, some = np.full((len(folds), len(z)), np.nan), self._some(len(z), seed)
        others = np.setdiff1d(np.arange(len(z)), some)
        for number, own in enumerate(folds):
            process, place = self._of(number)
            known = np.intersect1d(own, some)
            errors, std = process.left_out(place)
            found[number, known] = std if figure == "std" else z[known] - errors
        if len(others):
            asked = x[others]
            found[:, others] = np.concatenate(
                [
                    p.means(asked) if figure == "mean" else p.predict(asked)[1]
                    for p in self.processes_
                ]
            )
        return found

    def means(self, x: Floats, fold: int | None = None) -> Floats:
        """Means of one fold, or of all. **Shape**: x (N, d) → (F, N)."""
        encoded = self.encoding_(x)
        if fold is None:
            return np.concatenate([process.means(encoded) for process in self.processes_])
        process, place = self._of(fold)
        return process.means(encoded, place)

    def forget(self) -> None:
        """Free the memory of what is made again when it is asked for."""
        for process in self.processes_:
            process.forget()

    def _some(self, n: int, seed: int) -> Indices:
        return at_most(np.arange(n), self.recipe.rows, seed)

    def _of(self, fold: int) -> tuple[GaussianProcess, int]:
        """The process that knows a fold, and the fold's place there."""
        if len(self.processes_) == 1:
            return self.processes_[0], fold
        return self.processes_[fold], 0

    def components(self, x: Floats, fold: int | None = None) -> Components:
        encoded = self.encoding_(x)
        if fold is None:
            moments = [process.predict(encoded) for process in self.processes_]
        else:
            process, place = self._of(fold)
            moments = [process.predict(encoded, place)]
        return Components.stacked(
            [Components.single(*each) for found in moments for each in zip(*found, strict=True)]
        )


def _solved(rows: Floats, triangle: Floats, *, squares_only: bool) -> tuple[Floats, Floats]:
    """‖Tv‖² and TᵀTv for each row v and a lower triangle T, whose half that is zero costs nothing.

    With ``squares_only`` the second is left at 0. In the order of BLAS all matrices are transposed.

    **Shape**: rows (m, n), triangle (n, n) → (m,) and (m, n).
    """
    product = blas.dtrmm(1.0, triangle.T, rows.T, trans_a=1)
    squares = np.einsum("ij,ij->j", product, product)
    if squares_only:
        return squares, np.zeros(rows.shape)
    return squares, blas.dtrmm(1.0, triangle.T, product, overwrite_b=1).T
