"""The portfolio in an exported graph: its models, their calibration, the blend and its ranks."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from accord._types import Floats
from accord.distributions import Normal, RankCalibrated
from accord.export import (
    NORMAL,
    CurveGroup,
    GraphAnswer,
    MixtureGraph,
    StudentCurve,
    Value,
    by_row,
    central_tails,
    heads,
    joined,
    network_outputs,
    obstacles_of,
    state,
    states,
)
from accord.portfolio.blanks import CLOSE, FARTHEST_TARGET, Blanks
from accord.portfolio.blend import (
    LARGEST_LOG_STD,
    LARGEST_TOLERANCE,
    LEAST_VARIANCE,
    LocalTolerance,
    Member,
)
from accord.portfolio.boosting import BoostingModel, Trees
from accord.portfolio.corrected import CorrectedModel
from accord.portfolio.encoding import FARTHEST, FARTHEST_TRAINED, FeatureEncoding
from accord.portfolio.gaussian_process import GaussianProcess, GaussianProcessModel
from accord.portfolio.judged import JudgedModel
from accord.portfolio.local import BEYOND_GROWTH, LARGEST_GROWTH, Widening
from accord.portfolio.networks import LEAST_WEIGHT, NetworkModel
from accord.portfolio.regressor import PortfolioRegressor
from accord.portfolio.ridge import Line, RidgeModel
from accord.training import MixtureObjective
from accord.trust import Growth


@dataclass(frozen=True)
class Curves:
    """The curves that all networks of a model predict, in scaled target units.

    Weights add to 1 over all of them; ``networks`` is S.

    **Shape**: (N, S·K) each, weight also (1, S·K).
    """

    weight: Value
    mean: Value
    std: Value
    networks: int

    def by_network(self, values: Value) -> Value:
        """Averages over each network's own curves, (N, S·K) → (N, S)."""
        return self.networks * (self.weight * values).shaped(0, self.networks, -1).sum(2)


@states(FeatureEncoding)
def state_encoding(encoding: FeatureEncoding, x: Value) -> Value:
    """**Shape**: (N, d) → (N, features)."""
    if not len(encoding.kept_):
        return 0.0 * x.take([0], 1)
    x = x.take(encoding.kept_, 1)
    scaled: Value = (x - encoding.center_[None]) / encoding.scale_[None]
    z = scaled.at_least(-FARTHEST).at_most(FARTHEST)
    bounded = z / (1 + (z / encoding.bound).square()).sqrt()
    if not len(encoding.column_):
        return bounded
    place = (x.take(encoding.column_, 1) - encoding.start_[None]) / encoding.width_[None]
    return joined([bounded, 2 * place.at_least(0.0).at_most(1.0) - 1], 1)


@states(NetworkModel)
def state_networks(model: NetworkModel, x: Value, fold: int | None = None) -> Curves:
    recipe, k = model.recipe, model.recipe.components
    encoded = state_encoding(model.encoding_, x)
    parameters = model.parameters_of(fold)
    raw = network_outputs(parameters, encoded, recipe.activation)
    members = len(parameters[0])
    objective = MixtureObjective(k)
    start = np.linspace(-1, 1, k) if k > 1 else np.zeros(1)
    heads_of = objective.heads
    mean, variance = heads(
        raw + np.concatenate([start, np.zeros(objective.n_outputs - k)]),
        k,
        mean=heads_of.mean,
        variance=heads_of.variance,
        floor=heads_of.floor,
    )
    width = members * k
    if k == 1:
        weight = x.graph.real(np.full((1, width), 1 / members))
    else:
        logits = raw.take(np.arange(2 * k, 3 * k), 2)
        above = (x.graph.add("Softmax", logits, axis=-1) - LEAST_WEIGHT).at_least(0.0)
        weight = by_row(above / above.sum(2, keep=True), width) / members
    return Curves(weight, by_row(mean, width), by_row(variance.sqrt(), width), members)


@states(GaussianProcessModel)
def state_gaussian_processes(model: GaussianProcessModel, x: Value) -> Curves:
    known = _covariances(model, x)
    return _side_by_side(list(zip(_means(known), _deviations(known), strict=True)))


@states(CorrectedModel)
def state_corrected(model: CorrectedModel, x: Value) -> Curves:
    answers = []
    means = _means(_covariances(model.process_, x))
    deviations = _deviations(_covariances(model.narrow_, x))
    for fold, (mean, std) in enumerate(zip(means, deviations, strict=True)):
        errors = state_networks(model.errors_, joined([x, mean], 1), fold)
        mean = (mean + std * errors.mean).at_least(-FARTHEST_TRAINED).at_most(FARTHEST_TRAINED)
        std = (std * errors.std).at_most(FARTHEST_TRAINED)
        answers.append(replace(errors, mean=mean, std=std))
    n = len(answers)
    every = 0.0 * answers[0].mean  # weights of one curve are the same for all rows
    weight, mean, std = (
        joined([getattr(own, name) + every for own in answers], 1)
        for name in ("weight", "mean", "std")
    )
    return Curves(weight / n, mean, std, n * answers[0].networks)


def _covariances(model: GaussianProcessModel, x: Value) -> list[tuple[GaussianProcess, Value]]:
    """Each process, with the covariances of the rows that it knows; (N, n)."""
    x, found = state_encoding(model.encoding_, x), []
    for process in model.processes_:
        kernels = zip(process.covariance_.lengths, process.covariance_.amplitudes, strict=True)
        parts = [a * _matern(x, process.rows_, lengths) for lengths, a in kernels]
        found.append((process, reduce(Value.__add__, parts)))
    return found


def _means(known: list[tuple[GaussianProcess, Value]]) -> list[Value]:
    """The mean of each fold's posterior; (N, 1) each."""
    return [
        cross @ cross.graph.constant(weights[:, None])
        for process, cross in known
        for weights in process.weights_
    ]


def _deviations(known: list[tuple[GaussianProcess, Value]]) -> list[Value]:
    """The deviation of each fold's posterior, noise included; (N, 1) each."""
    found = []
    for process, cross in known:
        graph, kernel = cross.graph, process.covariance_
        factor = graph.constant(process.factor)
        explained = graph.add("Gemm", cross, factor, transB=1)
        solved = explained @ factor
        variance = kernel.amplitude + kernel.noise - explained.square().sum(1, keep=True)
        for hidden, correction in zip(process.hidden_, process.corrections, strict=True):
            own = variance
            if len(hidden):
                unknown = solved.take(hidden, 1) @ graph.constant(correction.T)
                own = variance + unknown.square().sum(1, keep=True)
            found.append(own.at_least(0.5 * kernel.noise).sqrt())
    return found


def _matern(x: Value, rows: Floats, lengths: Floats) -> Value:
    """The kernel of amplitude 1 between rows; (N, n)."""
    scaled, rows = x / lengths[None], rows / lengths
    products = scaled @ x.graph.constant(rows.T)
    squares = scaled.square().sum(1, keep=True) + np.square(rows).sum(1)[None] - 2 * products
    r = math.sqrt(5) * squares.at_least(1e-12).sqrt()
    kernel: Value = (1 + r + r.square() / 3) * (-r).exp()
    return kernel


@states(RidgeModel)
def state_ridge(model: RidgeModel, x: Value) -> Curves:
    encoded = state_encoding(model.encoding_, x).take(model.used_, 1)
    encoded = encoded.at_least(model.lowest_[None]).at_most(model.highest_[None])
    return _side_by_side([_line(line, encoded) for line in model.lines_])


def _line(line: Line, x: Value) -> tuple[Value, Value]:
    """Mean and deviation of a linear model; (N, 1) each."""
    graph, x = x.graph, x - line.center[None]
    place = x @ graph.constant(line.directions)
    unknown = x.square().sum(1, keep=True) - place.square().sum(1, keep=True)
    place = place.at_least(line.lowest[None]).at_most(line.highest[None])
    variance = line.noise + place.square() @ graph.constant(line.along[:, None])
    if line.across:
        variance = variance + line.across * unknown.at_least(0.0)
    value = line.intercept + place @ graph.constant(line.slope[:, None])
    mean = value.at_least(line.least).at_most(line.most)
    passed = (value - mean).square().at_most(line.target_range**2)
    return mean, (variance + passed).sqrt()


@states(BoostingModel)
def state_boosting(model: BoostingModel, x: Value) -> Curves:
    encoded = state_encoding(model.encoding_, x)
    moments = [
        (state_trees(mean, encoded), (0.5 * state_trees(spread, encoded)).exp())
        for mean, spread in zip(model.mean_, model.spread_, strict=True)
    ]
    return _side_by_side(moments)


def _side_by_side(moments: list[tuple[Value, Value]]) -> Curves:
    """One curve per fold, of equal weight."""
    mean, std = (joined(list(part), 1) for part in zip(*moments, strict=True))
    n = len(moments)
    return Curves(mean.graph.real(np.full((1, n), 1 / n)), mean, std, n)


@states(Trees)
def state_trees(trees: Trees, x: Value) -> Value:
    """The sum of the trees' values; (N, d) → (N, 1)."""
    flat = _FlatTrees(trees)
    if not flat.roots:
        return 0.0 * x.take([0], 1) + trees.start
    total = x.graph.add(
        "TreeEnsemble",
        x,
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function=1,  # the sum
        post_transform=0,
        tree_roots=flat.roots,
        nodes_modes=np.zeros(len(flat.columns), np.uint8),  # x ≤ threshold goes to "true"
        nodes_featureids=flat.columns,
        nodes_splits=np.array(flat.thresholds, np.float64),
        nodes_truenodeids=[child for child, _ in flat.children[0]],
        nodes_trueleafs=[int(leaf) for _, leaf in flat.children[0]],
        nodes_falsenodeids=[child for child, _ in flat.children[1]],
        nodes_falseleafs=[int(leaf) for _, leaf in flat.children[1]],
        leaf_targetids=[0] * len(flat.values),
        leaf_weights=np.array(flat.values, np.float64),
    )
    return total + trees.start


class _FlatTrees:
    """The nodes of complete binary trees in one list, without those that decide nothing."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self.roots: list[int] = []
        self.columns: list[int] = []
        self.thresholds: list[float] = []
        self.children: tuple[list[tuple[int, bool]], ...] = ([], [])
        self.values: list[float] = []
        for number in range(len(trees.column)):
            root, is_leaf = self._add(number, 0)
            # a tree that is one leaf needs a node, which ends there either way
            if is_leaf:
                root = self._split(0, math.inf, (root, True), (root, True))
            self.roots.append(root)

    def _add(self, number: int, place: int) -> tuple[int, bool]:
        """A subtree; gives its index, and whether it is among the leaves."""
        inner = self._trees.column.shape[1]
        if place >= inner:
            self.values.append(float(self._trees.value[number, place - inner]))
            return len(self.values) - 1, True
        threshold = float(self._trees.threshold[number, place])
        if math.isinf(threshold):
            return self._add(number, 2 * place + 1)
        own = self._split(int(self._trees.column[number, place]), threshold, (0, True), (0, True))
        for side in (0, 1):
            self.children[side][own] = self._add(number, 2 * place + 1 + side)
        return own, False

    def _split(
        self, column: int, threshold: float, low: tuple[int, bool], high: tuple[int, bool]
    ) -> int:
        self.columns.append(column)
        self.thresholds.append(threshold)
        self.children[0].append(low)
        self.children[1].append(high)
        return len(self.columns) - 1


def _growth_at(growth: Growth, values: Value) -> tuple[Value, Value]:
    """h, and what a row beyond all training rows gets on top; (N, 1) each."""
    beyond = (values - max(float(growth.farthest_), 1.0)).at_least(0.0)
    saturating = 1 - (-beyond / max(BEYOND_GROWTH, growth.extent_)).exp()
    h = (1 + values.at_least(0.0).at_most(LARGEST_GROWTH)).log()
    return h, FARTHEST_TARGET * saturating


@dataclass(frozen=True)
class _Blended:
    """One member's curves with their share of the blend, and what the parts of variance need.

    **Shape**: mean (N, S), of each network; distance (N, 1), the variance that distance adds.
    """

    share: float
    curves: CurveGroup
    mean: Value
    distance: Value


def _blank_variance(blanks: Blanks, x: Value, nothing: Value) -> Value:
    """What rows with features that say nothing get on top, in scaled target units; (N, 1)."""
    square, number, watched = nothing, nothing, nothing
    for place, (found, spread) in enumerate(zip(_found(blanks, x), blanks.spread, strict=True)):
        if place < blanks.learnt:
            square, number = square + spread**2 * found, number + found
        else:  # equal shares of one
            watched = watched.at_least(spread**2 * found)
    share = (number - 1.0).at_least(0.0) / max(1, blanks.learnt - 1)
    return square.at_least(blanks.together**2 * share) + watched


def _group(
    member: Member,
    share: float,
    target_scale: float,
    tolerance: LocalTolerance,
    x: Value,
    grown: tuple[Value, Value],
    blank: Value,
) -> _Blended:
    """One member's curves in the target's units, or in those of its logarithm.

    ``blank`` is the variance of rows whose features say nothing, in scaled units; (N, 1).
    """
    curves: Curves = state(member.model, x)
    scale, calibration = member.scale, member.calibration
    calibrated = (
        calibration.factor**2 * (curves.std.square() + calibration.floor**2)
        + calibration.tolerance_variance
    )
    center = (curves.weight * curves.mean).sum(1, keep=True)
    second = curves.weight * (calibration.variance_of_curve * calibrated + curves.mean.square())
    std = (second.sum(1, keep=True) - center.square()).at_least(0.0).sqrt()
    is_log = scale.transform == "log"
    unit: Value | float = 1.0
    if is_log:
        unit = target_scale / ((scale.center + scale.scale * center).exp() * scale.scale)
    above = (grown[0] - tolerance.start).at_least(0.0)
    chosen = above * (tolerance.base * unit + tolerance.relative * std)
    local = chosen.at_most(LARGEST_TOLERANCE * unit).at_least(grown[1] * unit)
    curves = _with_stray(replace(curves, std=calibrated.sqrt()), member)
    mean = curves.mean
    if is_log:
        local = local.at_most(LARGEST_LOG_STD / scale.scale)
        mean = mean - 0.5 * scale.scale * local.square()
    widening = local.square() + blank
    curve = NORMAL if is_log or math.isinf(calibration.df) else StudentCurve(calibration.df)
    group = CurveGroup(
        curve,
        scale.center + scale.scale * mean,
        scale.scale * (curves.std.square() + widening).sqrt(),
        share * curves.weight,
        math.log(scale.straight_from) if is_log else None,
    )
    means, variance = group.moments()
    if is_log:
        whole = group.scale.square()
        narrow = (whole - scale.scale**2 * widening).at_least(0.0)
        left = (1 - (-narrow).exp()) / (1 - (-whole).exp()).at_least(LEAST_VARIANCE)
        distance = curves.by_network((1 - (narrow - whole).exp() * left) * variance).mean(1)
    else:
        distance = calibration.variance_of_curve * scale.scale**2 * widening
    return _Blended(share, group, curves.by_network(means), distance)


def _with_stray(curves: Curves, member: Member) -> Curves:
    """One more curve for each network, around the mean of its others, which are calibrated."""
    stray = member.stray
    if not stray.share:
        return curves
    center = curves.by_network(curves.mean)
    weight = (1 - stray.share) * curves.weight + 0.0 * curves.mean  # for every row
    std = float(member.calibration.scale(np.array([stray.std]))[0])
    last = (0.0 * center + stray.share / curves.networks, center, 0.0 * center + std)

    def followed(values: Value, one: Value) -> Value:
        own = values.shaped(0, curves.networks, -1)
        return joined([own, one.shaped(0, curves.networks, 1)], 2).shaped(0, -1)

    new = [followed(*pair) for pair in zip((weight, curves.mean, curves.std), last, strict=True)]
    return Curves(new[0], new[1], new[2], curves.networks)


def _parts_of_variance(blend: list[_Blended]) -> tuple[Value, Value]:
    """Variances between networks, and from the local tolerance; (N, 1) each."""

    def average(values: list[Value]) -> Value:
        shares = (b.share * v.mean(1) for b, v in zip(blend, values, strict=True))
        return reduce(Value.__add__, shares)

    center = average([b.mean for b in blend])
    between = average([(b.mean - center).square() for b in blend])
    return between, average([b.distance for b in blend])


def _obstacles(model: PortfolioRegressor) -> list[str]:
    return [
        f"the model {member.name!r} of the blend ({words})"
        for member in model.members_
        for words in obstacles_of(member.model)
    ]


@states(PortfolioRegressor, obstacles=_obstacles)
def state_portfolio(model: PortfolioRegressor, x: Value) -> GraphAnswer:
    widening = model.widening_
    growth: Value = state(widening.growth, x)
    grown, beyond = _growth_at(widening.growth, growth)
    blank = _blank_variance(widening.blanks, x, 0.0 * growth)
    whole = sum(member.weight for member in model.members_)
    scale, tolerance = model.scale_.scale, widening.tolerance
    blend = [
        _group(m, m.weight / whole, scale, tolerance, x, (grown, beyond), blank)
        for m in model.members_
    ]
    return GraphAnswer(
        MixtureGraph([member.curves for member in blend]),
        widening.ends,
        lambda levels: _ranked(widening.levels, levels),
        lambda levels: _ranked_far(widening.rehearsed, levels),
        _unlike(widening.blanks, x, grown),
        _parts_of_variance(blend),
        _score(widening.growth, growth),
        _unusual(widening, x, growth),
    )


def _ranked(needed: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """The tails of the mixture at which quantiles by rank are taken, and their sides."""
    return _moved(levels, lambda base: RankCalibrated(base, needed))


def _ranked_far(rehearsed: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """The same for rows that are wholly unlike the training rows."""
    nothing = np.empty(0)
    return _moved(
        levels, lambda base: RankCalibrated(base, nothing, rehearsed=rehearsed, unlike=1.0)
    )


def _moved(levels: Floats, ranked: Callable[[Normal], RankCalibrated]) -> tuple[Floats, Floats]:
    tails, sign = central_tails(levels)
    # ranks move levels alike for every base
    base = Normal(np.zeros(1), 1.0)
    return np.asarray(base.cdf(np.asarray(ranked(base).quantile(tails)).T))[:, 0], sign


def _unlike(blanks: Blanks, x: Value, grown: Value) -> Value:
    """How far rows count as unlike the training rows; (N, 1)."""
    by_distance = (2 * grown.exp() - 3.0).at_least(0.0).at_most(1.0)
    return reduce(Value.at_least, _found(blanks, x), by_distance)


def _found(blanks: Blanks, x: Value) -> list[Value]:
    """1 for rows that have a blank, else 0; (N, 1) each."""
    found = []
    for features, values in zip(blanks.features, blanks.values, strict=True):
        away = (x.take(features, 1) - values[None]).abs().sum(1, keep=True)
        found.append((away <= CLOSE * len(features)).cast(np.float64))
    return found


def _unusual(widening: Widening, x: Value, growth: Value) -> Value:
    """Which rows are far from the training rows, or have a blank that widens them; (N, 1)."""
    blanks = widening.blanks
    found = zip(_found(blanks, x), blanks.spread, strict=True)
    matter = [is_blank > 0.5 for is_blank, spread in found if spread > 0]
    return reduce(Value.__or__, matter, growth > widening.growth.threshold_)


def _score(growth: Growth, values: Value) -> Value:
    """The distance in units of that from which on a row is unusual."""
    width, start = float(growth.width_), float(growth.start_)
    border = max(start + width * growth.threshold_, np.finfo(np.float64).tiny)
    return (start + width * values) / border


@states(JudgedModel, obstacles=lambda model: obstacles_of(model.estimator_))
def state_judged(model: JudgedModel, x: Value) -> GraphAnswer:
    answer: GraphAnswer = state(model.estimator_, x)
    growth: Value = state(model.growth_, x)
    return replace(
        answer,
        score=_score(model.growth_, growth),
        unusual=growth > model.growth_.threshold_,
    )
