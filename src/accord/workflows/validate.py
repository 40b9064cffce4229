"""Do anybody's predictions agree with what was observed?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accord._files import OptionError
from accord._types import Floats, Indices
from accord._wording import count, number, percent, quoted
from accord.agreement import (
    Agreement,
    DatasetRule,
    Rule,
    parse_rule,
    probability_of_agreement,
)
from accord.distributions import Normal
from accord.metrics import MINIMUM_ROWS
from accord.tables import Table, TableError, TableSource, check_present, number_column, read_table
from accord.tabular import Assessment, point_figures
from accord.workflows.verdict import (
    Level,
    Use,
    Verdict,
    belief_sentence,
    in_short,
    reliability,
    use_of,
    worst,
)

# From these shares on, predictions agree, and agree in part, unless a share is asked for.
_AGREES, _IN_PART = 0.9, 0.5
_SHORT: dict[Level, str] = {
    "good": "Agrees",
    "caution": "Agrees in part",
    "poor": "Does not agree",
}


_GUARD = (
    "In Python, accord.guard(model) gives any regressor intervals that hold: see docs/guard.md."
)


@dataclass(frozen=True)
class ValidateResult:
    """Whether anybody's predictions agree with what was observed.

    ``truth`` names the column of observed values. ``found`` is there for predictions that state
    their uncertainty, and ``belief`` says whether it can be believed; ``agreement`` holds one
    probability per row, or a single one for a rule over all rows. ``required`` is the share that
    was asked for, if one was.
    """

    source: str
    truth: str
    agreement: Agreement
    y: Floats
    mean: Floats
    found: Assessment | None
    verdict: Verdict
    belief: Verdict | None
    use: Use | None
    required: float | None
    figures: dict[str, float]
    warnings: tuple[str, ...]

    @property
    def rule(self) -> str:
        return str(self.agreement.rule)

    @property
    def failed(self) -> bool:
        """Whether agreement is below what was asked for."""
        return self.required is not None and self.agreement.mean < self.required

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "agreement": self.agreement.mean,
            "is_density": self.agreement.is_density,
            "route": self.agreement.route,
            "verdict": self.verdict.level,
            "headline": self.verdict.headline,
            "summary": self.verdict.summary,
            "required": self.required,
            "failed": self.failed,
            "uncertainty": None if self.belief is None else self.belief.level,
            "uncertainty_headline": None if self.belief is None else self.belief.headline,
            "width": None if self.use is None else vars(self.use),
            "figures": self.figures,
            "warnings": list(self.warnings),
        }


def validate_predictions(
    table: TableSource,
    *,
    truth: str,
    mean: str,
    std: str | None = None,
    lower: str | None = None,
    upper: str | None = None,
    coverage: float = 0.95,
    rule: str | Rule | DatasetRule,
    required: float | None = None,
) -> ValidateResult:
    """The probability of agreement between predictions and truth, and their reliability.

    Args:
        table: File or DataFrame with the predictions and what was observed.
        truth: The column of observed values.
        mean: The column of predictions.
        std: The column of their standard deviations. Predictions with one are taken as Gaussian;
            without it they are values, and agreement is a matter of yes or no.
        lower, upper: Columns of intervals; where they are given, it is they that are judged.
        coverage: Share of the values that the intervals are meant to contain.
        rule: When a prediction and an observed value agree, as words or as a rule.
        required: The agreement that is asked for.
    """
    agreed = _rule(rule)
    if (lower is None) != (upper is None):
        raise OptionError("intervals need both ends, got one. Name lower and upper.")
    source = read_table(table)
    roles = {"truth": truth, "mean": mean, "std": std, "lower": lower, "upper": upper}
    columns, rows = _columns(source, {k: v for k, v in roles.items() if v is not None})
    y, predicted = columns["truth"], columns["mean"]
    dist = Normal(predicted, _positive(columns["std"], std)) if "std" in columns else None
    agreement = probability_of_agreement(
        predicted if dist is None else dist, y, agreed, random_state=0
    )
    found = _found(columns, dist, coverage, rows)
    figures = _figures(columns, agreement, found)
    gaps = source.data.num_rows - len(rows)
    left_out = [f"{count(gaps, 'row')} with missing values left out."] if gaps else []
    return ValidateResult(
        source=source.name,
        truth=truth,
        agreement=agreement,
        y=y,
        mean=predicted,
        found=found,
        verdict=replace(
            _verdict(agreement, len(y), required), remarks=(_GUARD,) if found is None else ()
        ),
        belief=None if found is None else _belief(found, truth),
        use=None if found is None else use_of(found),
        required=required,
        figures=figures,
        warnings=(*source.notes, *left_out),
    )


def _found(
    columns: dict[str, Floats], dist: Normal | None, coverage: float, rows: Indices
) -> Assessment | None:
    """The uncertainty that was stated: the intervals given before those of the deviation."""
    y, given = columns["truth"], None
    if "lower" in columns:
        given = np.stack([columns["lower"], columns["upper"]], axis=1)
        crossed = np.flatnonzero(given[:, 0] > given[:, 1])
        if len(crossed):
            raise TableError(
                "lower ends must not exceed upper ends, got "
                f"{given[crossed[0], 0]:g} and {given[crossed[0], 1]:g} in row {rows[crossed[0]]}. "
                "Correct the columns."
            )
    if dist is not None:
        return Assessment.of(dist, y, rows=rows, coverage=coverage, interval=given)
    if given is None:
        return None
    return Assessment.of_intervals(columns["mean"], given, y, rows=rows, coverage=coverage)


def _rule(rule: str | Rule | DatasetRule) -> Rule | DatasetRule:
    if not isinstance(rule, str):
        return rule
    try:
        return parse_rule(rule)
    except ValueError as error:
        raise OptionError(str(error)) from error


def _columns(source: Table, roles: dict[str, str]) -> tuple[dict[str, Floats], Indices]:
    """The columns as numbers, rows with gaps left out, and the row numbers of the others.

    An interval without an end is one that contains everything on that side, and no gap.
    """
    check_present(roles.items(), source.data.column_names, source=source.name)
    columns = {
        role: number_column(source, role, name, infinite=role in ("lower", "upper"))
        for role, name in roles.items()
    }
    whole = ~np.isnan(np.stack(list(columns.values()))).any(axis=0)
    if whole.sum() < MINIMUM_ROWS:
        raise TableError(
            f"validation needs at least {MINIMUM_ROWS} whole rows, got {int(whole.sum())} in "
            f"{source.name}. Add rows."
        )
    return {role: values[whole] for role, values in columns.items()}, np.flatnonzero(whole) + 1


def _positive(deviation: Floats, name: str | None) -> Floats:
    wrong = deviation[~(deviation > 0)]
    if len(wrong):
        raise TableError(
            f"standard deviations must be positive, but column {quoted(name)} holds {wrong[0]:g}. "
            "Correct it, or leave std out for predictions without uncertainty."
        )
    return deviation


def _figures(
    columns: dict[str, Floats], agreement: Agreement, found: Assessment | None
) -> dict[str, float]:
    if found is not None:
        return {"agreement": agreement.mean} | found.figures()
    return {"agreement": agreement.mean} | point_figures(columns["truth"], columns["mean"])


def _verdict(agreement: Agreement, rows: int, required: float | None) -> Verdict:
    """Does the model agree with the data by this rule?"""
    if agreement.is_density:
        amount, short = f"density {number(agreement.mean)}", "Density of agreement"
        headline = (
            f"The density of agreement is {number(agreement.mean)}: compare it with that of "
            "another model."
        )
        level: Level = "caution"
    else:
        amount = f"probability {percent(agreement.mean)}"
        level, answer = _answer(agreement.mean, required)
        short = _SHORT[level]
        asked = f", {percent(required)} was asked for" if required is not None else ""
        headline = (
            f"The predictions {answer}: agreement {percent(agreement.mean)} "
            f"({agreement.rule}{asked})."
        )
    over = "over all rows together" if agreement.probability.ndim == 0 else "on average"
    return Verdict(
        level,
        headline,
        f"Model and data agree ({agreement.rule}) with {amount} {over} ({count(rows, 'row')}).",
        short=short,
    )


def _answer(share: float, required: float | None) -> tuple[Level, str]:
    if share >= (_AGREES if required is None else required):
        return "good", "agree with the data"
    if required is None and share >= _IN_PART:
        return "caution", "agree with the data in part"
    return "poor", "do not agree with the data"


def _belief(found: Assessment, truth: str) -> Verdict:
    """Can the stated uncertainty be believed, and is it narrow enough to be of use?"""
    judged, use = reliability(found), use_of(found)
    return Verdict(
        worst(judged.level, use.level),
        belief_sentence(judged, use),
        use.sentence(truth),
        (_GUARD,) if judged.belief == "does not hold" else (),
        f"Uncertainty: {in_short(judged, use).lower()}",
    )
