"""Do anybody's predictions agree with what was observed?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from accord.agreement import (
    Agreement,
    DatasetRule,
    Rule,
    parse_rule,
    probability_of_agreement,
)
from accord.distributions import Normal
from accord.metrics import coverage as share_covered
from accord.metrics import interval_score
from accord.tables import (
    OptionError,
    Table,
    TableError,
    absent_column,
    number_column,
    quoted,
    read_table,
)
from accord.workflows.assessment import Assessment
from accord.workflows.verdict import BELIEF, LEVELS, Level, Verdict, finding
from accord.workflows.wording import count, number, percent

Floats = NDArray[np.float64]

_MINIMUM_ROWS = 10
# Predictions without uncertainty are judged by their agreement alone.
_HIGH, _LOW = 0.9, 0.5


@dataclass(frozen=True)
class ValidateResult:
    """Whether anybody's predictions agree with what was observed.

    ``found`` is there for predictions that state their uncertainty; ``agreement`` holds one
    probability per row, or a single one for a rule over all rows.
    """

    source: str
    agreement: Agreement
    y: Floats
    mean: Floats
    found: Assessment | None
    verdict: Verdict
    figures: dict[str, float]
    warnings: tuple[str, ...]

    @property
    def rule(self) -> str:
        return str(self.agreement.rule)

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "agreement": self.agreement.mean,
            "is_density": self.agreement.is_density,
            "route": self.agreement.route,
            "verdict": self.verdict.level,
            "summary": self.verdict.summary,
            "figures": self.figures,
            "warnings": list(self.warnings),
        }


def validate_predictions(
    table: str | Path | pd.DataFrame,
    *,
    truth: str,
    mean: str,
    std: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    coverage: float = 0.95,
    rule: str | Rule | DatasetRule,
    encoding: str = "utf-8",
) -> ValidateResult:
    """The probability of agreement between predictions and truth, and their reliability.

    Predictions with ``std`` are taken as Gaussian; without it they are values, and agreement is a
    matter of yes or no. ``lower`` and ``upper`` are intervals meant to hold ``coverage``.
    """
    agreed = _rule(rule)
    if (lower is None) != (upper is None):
        raise OptionError("intervals need both ends, got one. Name --lower and --upper.")
    source = read_table(table, encoding=encoding)
    roles = {"truth": truth, "mean": mean, "std": std, "lower": lower, "upper": upper}
    columns, left_out = _columns(source, {k: v for k, v in roles.items() if v is not None})
    y, predicted = columns["truth"], columns["mean"]
    dist = Normal(predicted, _positive(columns["std"], std)) if "std" in columns else None
    agreement = probability_of_agreement(
        predicted if dist is None else dist, y, agreed, random_state=0
    )
    rows = np.arange(1, len(y) + 1)
    found = None if dist is None else Assessment.of(dist, y, rows=rows, coverage=coverage)
    figures = _figures(columns, agreement, found, coverage)
    return ValidateResult(
        source=source.name,
        agreement=agreement,
        y=y,
        mean=predicted,
        found=found,
        verdict=_verdict(agreement, found, figures, coverage),
        figures=figures,
        warnings=(f"{count(left_out, 'row')} with missing values left out.",) if left_out else (),
    )


def _rule(rule: str | Rule | DatasetRule) -> Rule | DatasetRule:
    if not isinstance(rule, str):
        return rule
    try:
        return parse_rule(rule)
    except ValueError as error:
        raise OptionError(str(error)) from error


def _columns(source: Table, roles: dict[str, str]) -> tuple[dict[str, Floats], int]:
    """The columns as numbers, rows with gaps left out, and how many those are."""
    names = source.data.column_names
    for role, name in roles.items():
        if name not in names:
            raise absent_column(name, names, role=role, source=source.name)
    columns = {role: number_column(source, role, name) for role, name in roles.items()}
    whole = ~np.isnan(np.stack(list(columns.values()))).any(axis=0)
    if whole.sum() < _MINIMUM_ROWS:
        raise TableError(
            f"validation needs at least {_MINIMUM_ROWS} whole rows, got {int(whole.sum())} in "
            f"{source.name}. Add rows."
        )
    return {role: values[whole] for role, values in columns.items()}, int((~whole).sum())


def _positive(deviation: Floats, name: str | None) -> Floats:
    wrong = deviation[~(deviation > 0)]
    if len(wrong):
        raise TableError(
            f"standard deviations must be positive, but column {quoted(name)} holds {wrong[0]:g}. "
            "Correct it, or leave --std out for predictions without uncertainty."
        )
    return deviation


def _figures(
    columns: dict[str, Floats], agreement: Agreement, found: Assessment | None, coverage: float
) -> dict[str, float]:
    error = columns["mean"] - columns["truth"]
    figures = {
        "rows": float(len(error)),
        "agreement": agreement.mean,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "bias": float(error.mean()),
    }
    if found is not None:
        figures |= {name: value for name, value in found.figures().items() if name not in figures}
    if "lower" in columns:
        interval = np.stack([columns["lower"], columns["upper"]], axis=1)
        y = columns["truth"]
        figures["interval_coverage"] = share_covered(y_true=y, interval=interval)
        figures["interval_score"] = interval_score(y_true=y, interval=interval, coverage=coverage)
    return figures


def _verdict(
    agreement: Agreement, found: Assessment | None, figures: dict[str, float], coverage: float
) -> Verdict:
    rows = int(figures["rows"])
    over = "over all rows together" if agreement.probability.ndim == 0 else "on average"
    if agreement.is_density:
        amount = f"density {number(agreement.mean)}"
    else:
        amount = f"probability {percent(agreement.mean)}"
    headline = f"Agreement {amount.split(' ', 1)[1]}"
    summary = (
        f"Model and data agree ({agreement.rule}) with {amount} {over} ({count(rows, 'row')})."
    )
    if "interval_coverage" in figures:
        inside = percent(figures["interval_coverage"])
        summary += f" The {percent(coverage)} intervals given cover {inside} of the rows."
    if found is None:
        level: Level = "good" if agreement.is_density or agreement.mean >= _HIGH else "caution"
        return Verdict(level if agreement.mean >= _LOW else "poor", f"{headline}.", summary)
    summary += (
        f" {percent(found.coverage)} intervals cover {percent(found.covered)}; typical width "
        f"{number(found.typical_width)}."
    )
    kind = finding(found)
    return Verdict(LEVELS[kind], f"{headline}; {BELIEF[kind]}", summary)
