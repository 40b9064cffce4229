"""How much to train: settings that suit the number of rows, and a budget of time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from accord.tables import OptionError, quoted

ToleranceChoice = Literal["local", "robust", "validate", "learn"]
_CHOICES: tuple[ToleranceChoice, ...] = ("local", "robust", "validate", "learn")

# Held-out rows that make the figures firm; small tables are split several times to get there.
_HELD_OUT_ROWS = 150
_HELD_OUT_SHARE = 0.2
_MAX_FOLDS = 5
# Up to this many rows the estimator's own settings are used; beyond, fewer epochs and larger
# batches, so that the number of steps grows far slower than the table.
_ORDINARY_ROWS = 8_000
_EPOCHS, _BATCH = 40, 16
_MIN_EPOCHS, _MAX_BATCH = 4, 512
# A tolerance for those who have no time to choose one.
_FIXED_TOLERANCE = 0.02
_PROBE_ROWS = 1_000


@dataclass(frozen=True)
class Tolerance:
    """What was asked for: a choice by name, a share of the target's range, or target units."""

    choice: ToleranceChoice | None = None
    share: float | None = None
    units: float | None = None

    def for_range(self, target_range: float) -> float | ToleranceChoice:
        """As the estimator takes it: a name, or a share of its own targets' range."""
        if self.choice is not None:
            return self.choice
        return self.share if self.share is not None else (self.units or 0.0) / target_range


def parse_tolerance(text: str | float) -> Tolerance:
    """0.5 in target units, "1%" of the range, or the name of a way to choose.

    >>> parse_tolerance("1%"), parse_tolerance("local").choice
    (Tolerance(choice=None, share=0.01, units=None), 'local')
    """
    words = str(text).strip().lower()
    for choice in _CHOICES:
        if words == choice:
            return Tolerance(choice=choice)
    try:
        value = float(words.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise OptionError(
            f"tolerance must be a number in target units, a percentage of the target's range or "
            f"one of {', '.join(_CHOICES)}, got {quoted(text)}. Write 0.5, 1% or local."
        )
    return Tolerance(share=value / 100) if words.endswith("%") else Tolerance(units=value)


@dataclass(frozen=True)
class Plan:
    """How often and how long to train."""

    n_folds: int
    epochs: int
    batch_size: int
    tolerance: Tolerance
    notes: tuple[str, ...] = ()


def plan_for(n_rows: int, tolerance: Tolerance) -> Plan:
    """Settings by the number of rows.

    >>> plan_for(442, Tolerance(choice="local"))
    Plan(n_folds=2, epochs=40, batch_size=16, ...)
    """
    folds = -(-_HELD_OUT_ROWS // max(1, round(_HELD_OUT_SHARE * n_rows)))
    growth = max(1.0, n_rows / _ORDINARY_ROWS) ** 0.5
    batch = min(_MAX_BATCH, _BATCH * 2 ** round(_log2(growth)))
    epochs = max(_MIN_EPOCHS, round(_EPOCHS / growth))
    return Plan(min(_MAX_FOLDS, folds), epochs, batch, tolerance)


def _log2(value: float) -> float:
    from math import log2

    return log2(value)


def fit_budget(plan: Plan, budget: float, *, n_rows: int, run: Callable[[Plan, int], None]) -> Plan:
    """A cheaper plan if the given one would take longer than ``budget`` seconds.

    ``run`` trains by a plan on the first so many rows; a short run tells the speed. Given up in
    turn: repeated splits, epochs, the choice of the tolerance.
    """
    for cheaper in _cheaper(plan):
        if _expected(cheaper, n_rows, run) <= budget:
            return cheaper
    return cheaper


def _cheaper(plan: Plan) -> Sequence[Plan]:
    single = replace(plan, n_folds=1, notes=("One random split instead of several, for time.",))
    shorter = replace(
        single,
        epochs=max(_MIN_EPOCHS, plan.epochs // 2),
        batch_size=2 * plan.batch_size,
        notes=("One random split and half the epochs, for time.",),
    )
    fixed = replace(
        shorter,
        tolerance=Tolerance(share=_FIXED_TOLERANCE),
        notes=(
            f"A fixed tolerance of {_FIXED_TOLERANCE:.0%} of the range instead of one chosen from "
            "the data, one random split and half the epochs, for time.",
        ),
    )
    plans = [plan, single, shorter]
    return [*plans, fixed] if plan.tolerance.choice is not None else plans


def _expected(plan: Plan, n_rows: int, run: Callable[[Plan, int], None]) -> float:
    """Seconds that a plan would take, from short runs of one and of three epochs on few rows."""
    rows = min(n_rows, _PROBE_ROWS)
    seconds = []
    for epochs in (1, 3):
        start = time.perf_counter()
        run(replace(plan, epochs=epochs), rows)
        seconds.append(time.perf_counter() - start)
    epoch = max(seconds[1] - seconds[0], 0.0) / 2
    once = max(seconds[0] - epoch, 0.0)
    return (once + epoch * plan.epochs) * n_rows / rows
