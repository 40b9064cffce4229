"""What a user knows of each target besides its value: tolerance, measurement error, bounds."""

from dataclasses import replace
from typing import Any

import numpy as np

from accord._checks import check_non_negative, check_not_nan
from accord.estimators.distributional import Floats
from accord.estimators.network_ensemble import Rows


def with_target_knowledge(
    rows: Rows, *, tolerance: Any = None, std: Any = None, lower: Any = None, upper: Any = None
) -> Rows:
    """Add columns ``tolerance``, ``std``, ``lower``, ``upper``, in target units, as far as given.

    Known rows get lower = upper = y.
    """
    more: dict[str, Floats] = {}
    if tolerance is not None:
        more["tolerance"] = _column("y_tolerance", tolerance, rows)
        check_non_negative("y_tolerance", more["tolerance"], remedy="Use 0 for exact agreement.")
    if std is not None:
        more["std"] = _column("y_std", std, rows)
        check_non_negative("y_std", more["std"], remedy="Use 0 for a target without error.")
    if lower is not None or upper is not None:
        more |= _bounds(rows, lower, upper)
    return replace(rows, more=more)


def _bounds(rows: Rows, lower: Any, upper: Any) -> dict[str, Floats]:
    low = _column("y_lower", np.full(len(rows), -np.inf) if lower is None else lower, rows)
    high = _column("y_upper", np.full(len(rows), np.inf) if upper is None else upper, rows)
    known = np.isnan(low) | np.isnan(high)
    low, high = np.where(known, rows.y, low), np.where(known, rows.y, high)
    crossing = low > high
    if crossing.any():
        row = int(np.flatnonzero(crossing.any(axis=1))[0])
        raise ValueError(
            f"y_lower must not exceed y_upper, got {low[row]} > {high[row]} in row {row}. "
            "Swap the bounds, or use NaN for a target that is known."
        )
    unbounded = np.isinf(low) & np.isinf(high)
    if unbounded.all():
        raise ValueError(
            "y_lower and y_upper must bound at least one target, got infinite bounds everywhere. "
            "Use NaN for targets that are known."
        )
    return {"lower": low, "upper": high}


def _column(name: str, values: Any, rows: Rows) -> Floats:
    """``values`` as (N, T): one value for all, one per row, or one per row and target."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim == 1:
        column = column[:, None]
    if column.ndim not in (0, 2) or (column.ndim == 2 and len(column) != len(rows)):
        raise ValueError(
            f"{name} must be a number or have a value per row ({len(rows)}), got shape "
            f"{np.shape(values)}."
        )
    if not name.startswith(("y_lower", "y_upper")):
        check_not_nan(name, column)
    return np.broadcast_to(column, rows.y.shape).astype(np.float64)
