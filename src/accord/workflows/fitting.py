"""From a table to a model and the evidence about it."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from accord.tables import Table, TableError, TrainingData, prepare_training, read_table
from accord.workflows.card import make_card
from accord.workflows.effects import feature_effects
from accord.workflows.evidence import Evidence, Recalibration, gather_evidence
from accord.workflows.model import TableModel
from accord.workflows.plan import Plan, fit_budget, parse_tolerance, plan_for
from accord.workflows.profile import TableProfile
from accord.workflows.progress import Progress, Silent
from accord.workflows.results import FitResult, ToleranceChoice
from accord.workflows.training import Trained, random_splits, train_all, unusual_split
from accord.workflows.unusual import UnusualRow, most_unusual
from accord.workflows.verdict import fit_verdict

# Relative cost of the stages, for the progress bar.
_READ, _TRAIN, _JUDGE, _EXPLAIN = 3.0, 80.0, 7.0, 10.0


def fit_table(
    table: str | Path | pd.DataFrame,
    *,
    target: str,
    coverage: float = 0.95,
    tolerance: str | float = "local",
    tolerance_column: str | None = None,
    lower_column: str | None = None,
    upper_column: str | None = None,
    ignore: Sequence[str] = (),
    recalibrate: Recalibration = "conformal",
    members: int = 5,
    time_budget: float | None = None,
    seed: int = 0,
    encoding: str = "utf-8",
    progress: Progress | None = None,
) -> FitResult:
    """Train a model on a CSV file, a Parquet file or a DataFrame, and test it on rows held out.

    Honest figures come from models that did not see the rows: some trained without random fifths
    of the table, one without its most unusual tenth. The model in the result is trained on all.

    Args:
        table: File or DataFrame with the target among its columns.
        target: The column to predict.
        coverage: Share of the values that intervals shall hold.
        tolerance: In target units; "1%" of the target's range; or "local", "robust", "validate",
            "learn" to have it chosen.
        tolerance_column: A tolerance per row, in target units.
        lower_column, upper_column: Bounds of censored targets; an empty cell is no bound.
        ignore: Columns not to be used.
        recalibrate: How intervals are adjusted on held-out rows.
        members: Networks in the ensemble.
        time_budget: Seconds to spend, roughly.
        seed: The same seed gives the same result.
        encoding: Of a CSV file.
        progress: Told how far the work is.
    """
    start = time.perf_counter()
    progress = progress or Silent()
    progress.plan(_READ + _TRAIN + _JUDGE + _EXPLAIN)
    progress.stage("Reading", weight=_READ)
    plan_tolerance = parse_tolerance(tolerance)
    source = read_table(table, encoding=encoding)
    data = prepare_training(
        source,
        target=target,
        tolerance_column=tolerance_column,
        lower_column=lower_column,
        upper_column=upper_column,
        ignore=ignore,
    )
    plan = plan_for(len(data.y), plan_tolerance)
    if time_budget is not None:
        plan = _affordable(data, plan, time_budget, members=members, seed=seed)
    final, evidence = _train(
        data, plan, recalibrate, coverage, members=members, seed=seed, progress=progress
    )
    settings = {
        "tolerance": f"of column {tolerance_column}" if tolerance_column else str(tolerance),
        "recalibration": evidence.method,
        "widening_of_unusual_rows": evidence.widening,
        "seed": seed,
        **_settings(final, plan),
    }
    model = _model(source, data, final, evidence, settings)
    progress.stage("Explaining", weight=_EXPLAIN)
    return FitResult(
        model=model,
        verdict=fit_verdict(evidence.random, evidence.unusual, target=target),
        random=evidence.random,
        unusual=evidence.unusual,
        effects=tuple(feature_effects(model.predict_dist, data.X, random_state=seed)),
        unusual_rows=_most_unusual(model, data, evidence),
        tolerance=_tolerance_choice(final),
        history=np.asarray(final.regressor.history_, dtype=np.float64),
        notes=(*data.notes, *plan.notes, *evidence.notes),
        seconds=time.perf_counter() - start,
    )


def _train(
    data: TrainingData,
    plan: Plan,
    recalibrate: Recalibration,
    coverage: float,
    *,
    members: int,
    seed: int,
    progress: Progress,
) -> tuple[Trained, Evidence]:
    """The model on all rows, and the evidence from models that did not see some of them."""
    everything = np.arange(len(data.y))
    random = random_splits(len(data.y), plan.n_folds, seed=seed)
    unusual = unusual_split(data.X, data.y, data.schema, seed=seed)
    if not all(data.exact[split.test].any() for split in (*random, unusual)):
        raise TableError(
            "each held-out part needs rows with a measured target to be judged on, got one with "
            "bounds only. Give more rows whose target is known."
        )
    progress.stage("Training", weight=_TRAIN)
    final, apart, *folds = train_all(
        data,
        [everything, unusual.train, *(split.train for split in random)],
        plan,
        members=members,
        seed=seed,
        advance=progress.advance,
    )
    progress.stage("Judging", weight=_JUDGE)
    evidence = gather_evidence(
        data,
        folds=list(zip(folds, random, strict=True)),
        apart=(apart, unusual),
        method=recalibrate,
        coverage=coverage,
        seed=seed,
    )
    return final, evidence


def _affordable(data: TrainingData, plan: Plan, budget: float, *, members: int, seed: int) -> Plan:
    def run(candidate: Plan, n_rows: int) -> None:
        rows = np.arange(n_rows)
        jobs = [rows] * (candidate.n_folds + 2)
        train_all(data, jobs, candidate, members=members, seed=seed)

    return fit_budget(plan, budget, n_rows=len(data.y), run=run)


def _model(
    source: Table,
    data: TrainingData,
    final: Trained,
    evidence: Evidence,
    settings: dict[str, Any],
) -> TableModel:
    assert final.trust is not None, "a table of so few rows is refused"
    return TableModel(
        schema=data.schema,
        preprocessor=final.preprocessor,
        regressor=final.regressor,
        calibrator=evidence.calibrator,
        widening=evidence.widening,
        trust=final.trust,
        profile=TableProfile(data.X),
        target_profile=TableProfile(pd.DataFrame({data.schema.target: data.y})),
        card=make_card(
            source, data, random=evidence.random, unusual=evidence.unusual, settings=settings
        ),
    )


def _most_unusual(
    model: TableModel, data: TrainingData, evidence: Evidence
) -> tuple[UnusualRow, ...]:
    """The strangest rows as the model sees them that had to do without them."""
    places = np.searchsorted(data.rows, evidence.unusual.rows)
    strangeness = model.trust.proximity_.distance_leave_one_out()[places]
    return most_unusual(
        evidence.unusual,
        data.X.iloc[places],
        strangeness=strangeness,
        usual=model.profile,
    )


def _settings(final: Trained, plan: Plan) -> dict[str, Any]:
    regressor = final.regressor
    return {
        "method": type(regressor).__name__,
        "members": regressor.n_members,
        "hidden": list(regressor.hidden),
        "epochs": plan.epochs,
        "batch_size": plan.batch_size,
        "chosen_tolerance": float(regressor.tolerance_),
        "relative_tolerance": float(regressor.relative_tolerance_),
        "random_splits": plan.n_folds,
    }


def _tolerance_choice(final: Trained) -> ToleranceChoice | None:
    curve = final.regressor.tolerance_curve_
    return None if curve is None else ToleranceChoice(**_in_common(asdict(curve)))


def _in_common(curve: dict[str, Any]) -> dict[str, Any]:
    names = ("values", "in_distribution", "out_of_distribution", "chosen")
    return {name: curve[name] for name in names}
