"""Ensembles of networks in an exported graph."""

import numpy as np

from accord.estimators.bvm import BVMRegressor
from accord.estimators.ensemble import Combine, NetworkEnsembleRegressor
from accord.estimators.plain import DeepEnsembleRegressor
from accord.estimators.tolerance import CHOICES, EDGE
from accord.export import (
    NORMAL,
    Curve,
    CurveGroup,
    GraphAnswer,
    MixtureGraph,
    Value,
    affine,
    by_row,
    curve_of,
    heads,
    network_outputs,
    state,
    states,
)
from accord.training import Heads


def _moments(model: NetworkEnsembleRegressor, form: Heads, x: Value) -> tuple[Value, Value]:
    """Mean and standard deviation of each member in target units; (N, d) → (N, M) each."""
    scaled = affine(x, model.x_shift_, model.x_scale_)
    raw = network_outputs(model.parameters_, scaled, model.activation)
    mean, variance = heads(raw, 1, mean=form.mean, variance=form.variance, floor=form.floor)
    shift, scale = float(model.y_shift_[0]), float(model.y_scale_[0])
    members = len(model.parameters_[0])
    return shift + scale * by_row(mean, members), scale * by_row(variance.sqrt(), members)


def _answer(
    curve: Curve, mean: Value, std: Value, combine: Combine, members: int, eps: Value | None = None
) -> GraphAnswer:
    """The uniform mixture of the members, or the Gaussian with its moments."""
    weight = mean.graph.real(np.full((1, members), 1 / members))
    group = CurveGroup(curve, mean, std / np.sqrt(curve.variance), weight, half_width=eps)
    mixture = MixtureGraph([group])
    if combine == "moments":
        one = mean.graph.real(np.ones((1, 1)))
        mixture = MixtureGraph([CurveGroup(NORMAL, *mixture.moments(), one)])
    return GraphAnswer(mixture)


def _several_targets(model: NetworkEnsembleRegressor) -> list[str]:
    n = len(model.target_names_)
    return [f"{n} targets (export one model per target)"] if n > 1 else []


@states(DeepEnsembleRegressor, obstacles=_several_targets)
def state_deep_ensemble(model: DeepEnsembleRegressor, x: Value) -> GraphAnswer:
    mean, std = _moments(model, model._heads, x)
    return _answer(NORMAL, mean, std, model.combine, len(model.parameters_[0]))


def _bvm_obstacles(model: BVMRegressor) -> list[str]:
    found = _several_targets(model)
    if model.predictive == "smoothed" and model.rule_center_.size:
        found.append("predictions smoothed by a rule (use predictive='model')")
    return found


@states(BVMRegressor, obstacles=_bvm_obstacles)
def state_bvm(model: BVMRegressor, x: Value) -> GraphAnswer:
    mean, std = _moments(model, model._heads, x)
    curve, members = curve_of(model.family, model.df), len(model.parameters_[0])
    eps = None
    if model.predictive == "smoothed":
        eps = _half_width(model, x, mean, std)
        if isinstance(model.tolerance, str) and model.tolerance in CHOICES:
            std = (std.square() + (EDGE * eps).square()).sqrt()
    return _answer(curve, mean, std, model.combine, members, eps)


def _half_width(model: BVMRegressor, x: Value, mean: Value, std: Value) -> Value:
    """ε of each row in target units, (N, 1) or (1, M)."""
    if model.member_tolerance_.size:
        return x.graph.real(model.member_tolerance_.reshape(1, -1))
    unit = x.graph.real(np.full((1, 1), np.ravel(model.tolerance_)[0]))
    if model.growth_ is None:
        return unit
    members = len(model.parameters_[0])
    average = mean.sum(1, keep=True) / members
    variance = (std.square() + (mean - average).square()).sum(1, keep=True) / members
    unit = unit + model.relative_tolerance_ * variance.sqrt()
    values: Value = state(model.growth_, x)
    widest = float(model.target_range_[0])
    return model.growth_.half_width_graph(values, unit=unit, target_range=widest)
