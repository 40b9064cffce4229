"""How a local tolerance grows away from the data."""

from typing import Self, final

import numpy as np

from accord._types import Floats
from accord.trust.proximity import Proximity

# ε₁: how fast the tolerance grows where nothing can be tested, as a fraction of the targets' range.
BEYOND_EVIDENCE = 0.02
_GROWTH_CAP = 20.0


@final
class Growth:
    """g(x): 0 for rows as usual as the training rows' nearer half, 1 at their 95 % quantile.

    Attributes:
        proximity_: The distance to the training rows.
        start_, width_: r₅₀ and r₉₅ − r₅₀.
        farthest_: G, the largest value of a training row.
        extent_: The distance between two training rows at random (root mean square), in widths.
    """

    def fit(
        self, x: Floats, *, feature_weight: Floats | None = None, max_references: int = 20_000
    ) -> Self:
        """**Shape**: x (N, d), feature_weight (d,)."""
        proximity = Proximity(max_references=max_references, random_state=0)
        self.proximity_ = proximity.fit(x, feature_weight=feature_weight)
        distances = self.proximity_.distance_leave_one_out()
        self.start_, high = np.quantile(distances, [0.5, 0.95])
        # rows all alike: any distance at all is unusual, and the cap bounds what follows
        self.width_ = max(high - self.start_, 1e-3 * max(high, 1e-12))
        self.farthest_ = (distances.max() - self.start_) / self.width_
        spread = self.proximity_.references_.var(axis=0).sum()
        self.extent_ = float(np.sqrt(2 * spread)) / self.width_
        return self

    def __call__(self, x: Floats) -> Floats:
        """g before it is cut off at 0.

        **Shape**: x (N, d) → (N,).
        """
        return self._of_distance(self.proximity_.distance(x))

    def leave_one_out(self) -> Floats:
        """g of each training row, among the other training rows; before it is cut off at 0."""
        return self._of_distance(self.proximity_.distance_leave_one_out())

    def _of_distance(self, distance: Floats) -> Floats:
        return np.asarray((distance - self.start_) / self.width_)

    def half_width(self, values: Floats, *, unit: Floats, target_range: Floats) -> Floats:
        """ε(x) where the growth has these values and ``unit`` is ε₀ + κ s(x) in target units.

        **Shape**: values (N,); unit (N, T) or (T,); target_range (T,) → (N, T).
        """
        growth = values[:, None]
        beyond = BEYOND_EVIDENCE * (growth - self.farthest_).clip(min=0.0)
        half_width = growth.clip(0.0, _GROWTH_CAP) * unit + beyond * target_range
        return np.asarray(np.minimum(half_width, target_range))
