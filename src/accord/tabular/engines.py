"""What learns behind a table, the portfolio or one estimator in its place; and both as ONNX."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import clone

from accord._checks import check_choice
from accord._files import write_whole
from accord._types import Floats
from accord._wording import quoted
from accord.estimators import DistributionalRegressor, check_tolerance, stated_half_width
from accord.export import (
    Graph,
    GraphAnswer,
    NotExportableError,
    answer_graph,
    import_onnx,
    obstacles_of,
    state,
)
from accord.portfolio import (
    EFFORTS,
    Bounds,
    JudgedModel,
    PortfolioRegressor,
    check_contained,
    checked_bounds,
)
from accord.tables import TableInputs, TrainingData, described_inputs, state_unlike

if TYPE_CHECKING:
    from accord.tabular.regressor import TableRegressor

Engine: TypeAlias = PortfolioRegressor | JudgedModel


def make_engine(settings: Mapping[str, Any], bounds: Bounds | None) -> Engine:
    """The portfolio, or the estimator that is set; one without a seed of its own gets this one."""
    estimator, seed = settings["engine"], settings["random_state"]
    if estimator is None:
        own = ("effort", "time_budget", "n_jobs", "random_state")
        return PortfolioRegressor(**{name: settings[name] for name in own}, bounds=bounds)
    engine = clone(estimator)
    if engine.get_params().get("random_state", 0) is None:
        engine.set_params(random_state=seed)
    return JudgedModel(engine, random_state=seed)


def check_engine(settings: Mapping[str, Any]) -> None:
    """Refuse settings of the portfolio for another engine, which has its own."""
    estimator, bounds = settings["engine"], settings["bounds"]
    check_choice("effort", settings["effort"], EFFORTS)
    if estimator is None:
        check_tolerance(settings["tolerance"], words=("choose",))
        return
    if not isinstance(estimator, DistributionalRegressor):
        raise TypeError(
            "engine must be an estimator of accord that predicts distributions, got "
            f"{type(estimator).__name__}. Use for instance BVMRegressor.preset('table1')."
        )
    given = {
        "time_budget": settings["time_budget"] is not None,
        "tolerance": settings["tolerance"] != "choose",
        "bounds": bounds is not None and bounds != "detect",
    }
    for name in (name for name, is_given in given.items() if is_given):
        where = "Give it to the engine" if name in estimator.get_params() else "Leave it out"
        raise ValueError(
            f"{name} must be left out beside an engine, which has settings of its own, got one "
            f"beside a {type(estimator).__name__}. {where}."
        )


def check_placed(estimator: DistributionalRegressor | None, placed: Mapping[str, Any]) -> None:
    """Refuse to keep or to distribute what is one unit: an engine trains all at once."""
    given = [name for name, value in placed.items() if value is not None]
    if estimator is not None and given:
        raise ValueError(
            f"{given[0]} must be left out beside an engine, whose networks are trained together, "
            f"got one beside a {type(estimator).__name__}. Leave it out, or leave out the engine."
        )


def bounds_for(
    bounds: Any, data: TrainingData, estimator: Any
) -> tuple[Bounds | None, tuple[str, ...]]:
    """The bounds in use, and a note if they were found in the data."""
    if estimator is not None or bounds is None:
        return None, ()
    if bounds != "detect":
        ends = checked_bounds(bounds)
        check_contained(data.y, data.exact, ends, rows=data.rows)
        return ends, ()
    if data.y[data.exact].min() < 0:
        return None, ()
    return (0.0, None), (
        f"No value of {quoted(data.schema.target)} is below 0: intervals stay at or above 0. "
        "Set the bounds to none (--bounds none) if lower values are possible.",
    )


def tolerance_for(tolerance: float | str, data: TrainingData) -> Floats | None:
    """The tolerance of each row, None where it is to be chosen."""
    if data.tolerance is not None or tolerance == "choose":
        return data.tolerance
    target_range = np.ptp(data.y[data.exact]).reshape(1)
    return np.full(len(data.y), stated_half_width(tolerance, target_range)[0])


def export_table(
    model: "TableRegressor", path: str | Path, *, levels: Sequence[float] | None
) -> None:
    """Write a fitted table model; see :meth:`TableRegressor.export`."""
    import_onnx()
    if obstacles := obstacles_of(model.engine_):
        raise NotExportableError(obstacles)
    schema, graph = model.schema_, Graph()
    inputs = TableInputs.of(graph, schema)
    answer: GraphAnswer = state(model.engine_, state(model.encoder_, inputs))
    unlike = state_unlike(inputs, schema)
    if unlike is not None and answer.unusual is not None:
        answer = replace(answer, unusual=answer.unusual | unlike)
    found = central_levels(model.coverage) if levels is None else levels
    write_whole(path, answer_graph(graph, answer, levels=found, metadata=_metadata(model)))


def central_levels(coverage: float) -> list[float]:
    """The ends of the central interval, and the median between them."""
    return [round((1 - coverage) / 2, 12), 0.5, round((1 + coverage) / 2, 12)]


def _metadata(model: "TableRegressor") -> dict[str, Any]:
    card = model.card_
    return {
        "target": model.schema_.target,
        "inputs": described_inputs(model.schema_),
        "coverage": model.coverage,
        "n_training_rows": card.n_rows,
    }
