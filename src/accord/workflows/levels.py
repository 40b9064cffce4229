"""How coverage and width of intervals change with the coverage that is stated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accord._types import Floats
from accord.portfolio import HeldOut
from accord.tabular import Assessment

_STATED = tuple(round(share / 100, 2) for share in range(50, 100))
# Mean widths are known well enough from so many rows.
_ROWS = 1_000


@dataclass(frozen=True)
class LevelCurve:
    """Stated coverages, and for each the share of rows inside and the mean width.

    ``without_model`` is the width of the interval that holds as many of the target's own values.

    **Shape**: all (L,).
    """

    rows: int
    stated: Floats
    covered: Floats
    width: Floats
    without_model: Floats

    def to_json(self) -> dict[str, Any]:
        return vars(self)


def level_curve(found: Assessment, parts: Sequence[HeldOut]) -> LevelCurve:
    """Coverage and width of the rows of ``found``, whose distributions are in ``parts``."""
    stated = np.array(sorted({*_STATED, found.coverage}))
    if not len(found):
        nothing = np.full(len(stated), np.nan)
        return LevelCurve(0, stated, nothing, nothing, nothing)
    width = _mean_widths(stated, parts)
    width[stated == found.coverage] = found.mean_width
    low, high = np.quantile(found.y, [0.5 - stated / 2, 0.5 + stated / 2])
    return LevelCurve(
        rows=len(found),
        stated=stated,
        covered=np.array([found.covered_at(level) for level in stated]),
        width=width,
        without_model=high - low,
    )


def _mean_widths(stated: Floats, parts: Sequence[HeldOut]) -> Floats:
    """Mean widths at each level, from at most ``_ROWS`` rows."""
    step = max(1, sum(len(part.rows) for part in parts) // _ROWS)
    tails = np.concatenate([0.5 - stated / 2, 0.5 + stated / 2])
    ends = [np.asarray(part.dist[::step].quantile(tails)) for part in parts]
    low, high = np.split(np.concatenate(ends), 2, axis=1)
    return np.asarray((high - low).mean(axis=0))
