"""Networks trained to agree with several targets at once, whose errors may be correlated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self, final, get_args, overload

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from torch import Tensor

from accord._checks import check_choice, check_finite, check_non_negative
from accord._numerics import (
    Region,
    log_normal_density,
    log_normal_in_any,
    normal_probability,
)
from accord._types import ArrowFrame, Floats, Frame
from accord.agreement import (
    Agreeing,
    AllWithin,
    JointRule,
    NormWithin,
    Predicate,
    agreeing_errors,
)
from accord.distributions import (
    AgreedShape,
    Distribution,
    JointDistribution,
    JointMixture,
    JointSmoothed,
    MultivariateNormal,
    log_volume,
    to_floats,
)
from accord.estimators.agreeing import Predictive
from accord.estimators.ensemble import NetworkEnsembleRegressor, TrainingPlan
from accord.estimators.tolerance import stated_half_width
from accord.estimators.trained import Rows, TargetScaling, warn_if_useless
from accord.training import (
    VARIANCE_FLOOR,
    ByAutograd,
    Columns,
    Heads,
    MeanHead,
    Scaling,
    Trained,
    VarianceHead,
)

_ROWS_OF_ERROR = 1000  # training rows on which the error of the loss is measured


@final
@dataclass(frozen=True)
class JointHeads:
    """How raw outputs become the mean and the Cholesky factor of D scaled targets.

    L = diag(√d) (1 + A): ``heads`` give the means and the d, the variance of each target given
    those before it; A is strictly lower triangular and made of raw outputs, which say how much of a
    target's error the errors before it explain, in units of √d.

    **Shape**: raw (…, D (D + 3)/2): means, variances, and A row by row → (…, D) and (…, D, D).
    """

    heads: Heads
    n_targets: int

    @property
    def n_outputs(self) -> int:
        return self.n_targets * (self.n_targets + 3) // 2

    def __call__(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        d = self.n_targets
        mean, variance = self.heads(raw[..., : 2 * d])
        rows, columns = torch.tril_indices(d, d, -1, device=raw.device)
        factor = torch.eye(d, dtype=raw.dtype, device=raw.device).expand(*mean.shape, d)
        factor = factor.clone()
        factor[..., rows, columns] = raw[..., 2 * d :]
        return mean, factor * variance.sqrt()[..., None]


@final
@dataclass(frozen=True)
class JointLoss:
    """−log P(ŷ − t agrees with the row) for jointly normal ŷ; exact agreement is NLL.

    The errors that agree are those of disjoint regions, whose numbers stand in a column. Where a
    rule has to be asked, ``agrees`` is given the columns and errors (K, M, B, D), and the regions
    say where most of the agreement is.

    Columns: ``target`` (M, B, D); unless agreement is exact, ``regions`` (M, B, …), the tensors of
    the regions side by side, and ``log_volume`` (M, B, 1), which is added.

    Args:
        heads: From raw outputs to means and Cholesky factors.
        regions: Regions of the form that the columns have; none for exact agreement.
        agrees: Where the regions do not say it all, whether errors agree.
    """

    heads: JointHeads
    regions: tuple[Region, ...] = ()
    agrees: Callable[[Columns, Tensor], Tensor] | None = None

    def __call__(self, raw: Tensor, columns: Columns) -> Tensor:
        mean, cholesky = self.heads(raw)
        shift = mean - columns["target"]
        if not self.regions:
            return -log_normal_density(shift, cholesky)[..., None]
        log_p = self._log_probability(shift, cholesky, columns)
        return (columns["log_volume"] - log_p[..., None]).to(raw.dtype)

    def error(self, raw: Tensor, columns: Columns) -> Tensor:
        """How far the loss is from that with other points: its error, about."""
        mean, cholesky = self.heads(raw)
        shift = mean - columns["target"]
        fine, coarse = (
            self._log_probability(shift, cholesky, columns, coarse=coarse)
            for coarse in (False, True)
        )
        return (fine - coarse).abs()

    def _log_probability(
        self, shift: Tensor, cholesky: Tensor, columns: Columns, *, coarse: bool = False
    ) -> Tensor:
        n_outputs = shift.shape[-1]
        side_by_side = columns["regions"].double()
        numbers = iter(side_by_side.chunk(side_by_side.shape[-1] // n_outputs, -1))
        regions = [region.map(lambda _: next(numbers)) for region in self.regions]
        asked = None if self.agrees is None else partial(self.agrees, columns)
        return log_normal_in_any(regions, shift, cholesky, agrees=asked, coarse=coarse)


class _Kernel(NamedTuple):
    """Errors that a rule allows for: a box or an ellipsoid, the same for all rows.

    **Shape**: half_width (T,), in target units.
    """

    figure: AgreedShape
    half_width: Floats


@dataclass(kw_only=True, eq=False, repr=False)
class _Agreement:
    """The most important settings: fields of the last base come first in the signature."""

    tolerance: float | str | Sequence[float] = 0.0
    rule: JointRule | Predicate | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class JointBVMRegressor(NetworkEnsembleRegressor, _Agreement):
    """Ensemble trained on the probability that all targets of a row agree together.

    Each member predicts for the T targets of a row their means and a Cholesky factor of their
    covariance, and minimises −log P(A): all targets within their tolerances, or their error vector
    within a norm. ``predict_joint`` answers with the joint distribution; everything else that
    regressors have (``predict``, ``predict_interval``, ``predict_dist``, …) is about each target
    alone. :class:`accord.BVMRegressor` takes the targets of a row to be independent. Tolerances
    well below the noise leave its correlation to be seen; within a tolerance, errors count as
    uncorrelated.

    Args:
        tolerance: ε of "all within": a number in the targets' units, one per target, or a share of
            each training target's range such as ``"1%"``. 0 is exact agreement, the negative
            log-likelihood.
        rule: In place of a tolerance, a rule over several outputs, such as
            ``NormWithin(1.0, scale=[0.5, 0.1])``, ``EachOutput([Within(0.5), AtLeast()])``, what
            ``&``, ``|`` and ``~`` make of them, or a callable ``(y_hat, y) -> bool`` of vectors,
            (..., T) → (...), which is asked at some thousand points of every row in every step:
            slow, and not to be saved.
            "All within" and "norm within" imply the density that is predicted with; others are
            trained on with ``predictive="model"``, and ``fit`` refuses them otherwise.
        {settings}
        predictive: ``"smoothed"`` by the tolerance, or the ``"model"`` alone.
        mean_head: From raw output to the mean of the scaled target: ``"identity"``, or
            ``"sigmoid"``, which confines it to the training range.
        variance_head: From raw output to the variance of a scaled target given those before it:
            ``"sigmoid"``, ``"softplus"`` or ``"exp"``.
        variance_floor: Added to each of these variances, so that none collapses.

    Attributes:
        half_width_: (T,) in the targets' units, half the edges of the box that the rule allows for,
            or the semi-axes of its ellipsoid; empty for exact agreement, and for a rule that
            implies no density.
        rule_error_: Error of the training loss, −log P(A), the largest over members and the first
            thousand rows.
        parameters_: The members' weights and biases, with a leading member axis.
        history_: (epochs, M) training loss.

    Example:
        >>> import numpy as np
        >>> from accord import JointBVMRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (600, 1))
        >>> noise = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=600)
        >>> model = JointBVMRegressor(tolerance=0.1, random_state=0).fit(x, x + 0.3 * noise)
        >>> float(model.predict_joint([[0.5]]).correlation[0, 0, 1].round(1))
        0.8
    """

    target_scaling: TargetScaling = "standard"
    predictive: Predictive = "smoothed"
    mean_head: MeanHead = "identity"
    variance_head: VarianceHead = "softplus"
    variance_floor: float = VARIANCE_FLOOR

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Train on features (N, d) and targets (N, T), each row with its weight."""
        return self._train(self._plan(X, y, sample_weight=sample_weight))

    def predict_joint(self, X: Any) -> JointDistribution:
        """The joint distribution of the targets of each row: covariance, log_prob, sample, …

        **Shape**: (N,), with values (N, T).
        """
        return self._joint(self._checked(X))

    @overload
    def predict_box(self, X: Frame, coverage: float = 0.95) -> Frame: ...

    @overload
    def predict_box(self, X: Any, coverage: float = 0.95) -> Floats: ...

    def predict_box(self, X: Any, coverage: float = 0.95) -> ArrowFrame | Floats:
        """Intervals that hold all targets of a row at once with probability ``coverage``.

        **Shape**: (N, T, 2). A frame gives a frame of its kind.
        """
        return self._framed(X, np.asarray(self.predict_joint(X).box(coverage)), ["lower", "upper"])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        return tags

    def _plan(  # type: ignore[override]  # the options of this class's fit
        self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None
    ) -> TrainingPlan:
        goes_on = self._continues()
        rows = self._rows(X, y, sample_weight, reset=not goes_on)
        rule = self._rule_for(rows)
        kernel = None if rule is None else self._smoothing(rule, rows.y.shape[1])
        x_scaling, y_scaling = self._scalings(rows, goes_on)
        columns, loss = self._loss(rows.y, rule, kernel, y_scaling)
        seeds = self._seeds()
        initial = self._kept_parameters(seeds) if goes_on else None
        x = x_scaling.scaled(rows.x)
        task = self._task(x, columns, rows.weight, seeds, initial=initial)

        def finish(trained: list[Trained]) -> None:
            self._keep(trained[0], x_scaling, y_scaling)
            self.figure_: AgreedShape = "box" if kernel is None else kernel.figure
            self.half_width_ = np.empty(0) if kernel is None else kernel.half_width
            self.rule_error_ = 0.0 if rule is None else self._measured_error(loss, rows.x, columns)
            if rule is None or kernel is not None:  # else the loss is that of no density
                warn_if_useless(self.history_, columns["target"])

        architecture = self._architecture(rows, loss.heads.n_outputs)
        return TrainingPlan([task], architecture, ByAutograd(loss), self._settings(), finish)

    def _rule_for(self, rows: Rows) -> JointRule | None:
        """The rule, or that of the tolerance; None for exact agreement. Settings are checked."""
        check_choice("predictive", self.predictive, get_args(Predictive))
        if self.single_output_:
            raise ValueError(
                "y must have a column per target, got one-dimensional y. Use BVMRegressor for a "
                "single target, or y[:, None]."
            )
        half_width = self._stated_half_width(rows.y)
        if self.rule is None:
            return AllWithin(half_width) if half_width.any() else None
        if half_width.any():
            raise ValueError(
                f"tolerance must be 0 beside a rule, got {self.tolerance!r}. State one of the two."
            )
        return JointRule.of(self.rule)

    def _stated_half_width(self, y: Floats) -> Floats:
        if isinstance(self.tolerance, str):
            return stated_half_width(self.tolerance, Scaling.range(y).scale)
        given = np.asarray(self.tolerance, dtype=np.float64)
        check_non_negative("tolerance", given, remedy="Use 0 for exact agreement (NLL).")
        check_finite("tolerance", given)
        if given.shape not in ((), y.shape[1:]):
            raise ValueError(
                f"tolerance must be a number or one per target ({y.shape[1]}), got shape "
                f"{given.shape}."
            )
        return np.broadcast_to(given, y.shape[1:]).astype(np.float64)

    def _smoothing(self, rule: JointRule, n_targets: int) -> _Kernel | None:
        """The errors that the rule allows for, where they are the same in all rows."""
        kernel = _kernel_of(rule, n_targets)
        if kernel is None and self.predictive == "smoothed":
            raise ValueError(
                "a rule that predictions are smoothed by must be AllWithin or NormWithin with the "
                f"same numbers for all rows, got {rule!r}. Use predictive='model' to train on it."
            )
        return kernel

    @property
    def _heads(self) -> Heads:
        return Heads(self.mean_head, self.variance_head, self.variance_floor)

    def _loss(
        self, y: Floats, rule: JointRule | None, kernel: _Kernel | None, scaling: Scaling
    ) -> tuple[dict[str, Floats], JointLoss]:
        """What the loss needs of each row, in scaled units, and the loss."""
        heads = JointHeads(self._heads, y.shape[1])
        columns = {"target": scaling.scaled(y)}
        if rule is None:
            return columns, JointLoss(heads)
        spread = np.broadcast_to(scaling.scale, y.shape).copy()
        allowed = agreeing_errors(rule, torch.as_tensor(y), torch.as_tensor(spread))
        _check_can_agree(allowed, rule, spread)
        columns["regions"] = np.hstack(
            [x.numpy() / scaling.scale for x in _numbers_of(allowed.regions)]
        )
        # in density form, where there is one: comparable with NLL
        volume = 0.0
        if kernel is not None:
            scaled = torch.as_tensor(kernel.half_width / scaling.scale)
            volume = float(log_volume(kernel.figure, scaled))
        columns["log_volume"] = np.full((len(y), 1), volume)
        return columns, JointLoss(heads, allowed.regions, _asking(allowed, scaling))

    def _measured_error(self, loss: JointLoss, x: Floats, columns: dict[str, Floats]) -> float:
        raw = torch.as_tensor(self._outputs(x[:_ROWS_OF_ERROR]))
        some = {n: torch.as_tensor(values[:_ROWS_OF_ERROR]) for n, values in columns.items()}
        return float(loss.error(raw, some).max())

    def _joint(self, X: Floats) -> JointDistribution:
        n = len(self.target_names_)
        heads = JointHeads(self._heads, n)

        def transform(raw: Tensor) -> Tensor:
            mean, cholesky = heads(raw)
            return torch.cat([mean, cholesky.flatten(-2)], -1)

        outputs = self._outputs(X, transform)
        mean = self.y_shift_ + self.y_scale_ * outputs[..., :n]
        cholesky = outputs[..., n:].reshape(*mean.shape, n) * self.y_scale_[:, None]
        members = MultivariateNormal(mean, cholesky)
        if self.predictive == "model" or not self.half_width_.size:
            return JointMixture(members)
        return JointMixture(JointSmoothed(members, self.half_width_, figure=self.figure_))

    def _predictive(self, X: Floats) -> Distribution:
        return self._joint(X).marginals

    def _log_density(self, X: Floats, y: Floats) -> Floats:
        return np.asarray(self._joint(X).log_prob(y))


def _numbers_of(regions: Sequence[Region]) -> list[Tensor]:
    """The tensors of regions, in the order in which a `JointLoss` reads them."""
    numbers: list[Tensor] = []

    def noted(tensor: Tensor) -> Tensor:
        numbers.append(tensor)
        return tensor

    for region in regions:
        region.map(noted)
    return numbers


def _check_can_agree(allowed: Agreeing, rule: JointRule, spread: Floats) -> None:
    """Refuse a rule under which no error of some row agrees, as far as errors of any size show."""
    if allowed.asked is not None:  # a callable was asked already
        return
    n = 1 if rule.of_difference and not rule.per_row else len(spread)  # else all rows are alike
    regions = [region.map(lambda numbers: numbers[:n]) for region in allowed.regions]
    wide = torch.diag_embed(torch.as_tensor(spread[:n]))
    log_p, _ = normal_probability(regions, torch.zeros(wide.shape[:2]).double(), wide)
    if bool((log_p == -torch.inf).any()):
        row = int(torch.nonzero(log_p == -torch.inf)[0])
        raise ValueError(
            f"every row must have predictions that agree with it, got none for row {row} under "
            f"{rule!r}. Widen the rule, or leave such rows out."
        )


def _kernel_of(rule: JointRule, n_targets: int) -> _Kernel | None:
    if isinstance(rule, AllWithin) and np.ndim(rule.tolerance) < 2:
        return _Kernel("box", np.broadcast_to(to_floats(rule.tolerance), (n_targets,)).copy())
    if isinstance(rule, NormWithin) and np.ndim(rule.scale) < 2:
        axes = rule.radius * to_floats(rule.scale)
        return _Kernel("ellipsoid", np.broadcast_to(axes, (n_targets,)).copy())
    return None


def _asking(allowed: Agreeing, scaling: Scaling) -> Callable[[Columns, Tensor], Tensor] | None:
    """How a rule is asked about scaled errors; None where the regions say it all."""
    rule = allowed.asked
    if rule is None:
        return None
    if rule.per_row:
        raise ValueError(
            "a callable to train on must not be joined with numbers per row, got "
            f"{rule!r}. Use the same numbers for all rows."
        )

    def agrees(columns: Columns, errors: Tensor) -> Tensor:
        y = scaling.shift + scaling.scale * to_floats(columns["target"])
        return torch.from_numpy(rule(y + scaling.scale * errors.numpy(), y))

    return agrees
