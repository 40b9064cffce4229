"""Which tolerance to agree within: how it grows away from the data, and how it is chosen.

A constant tolerance that helps far from the training data costs likelihood near it. The local
tolerance is 0 where training rows are dense and grows where they are not,

    ε(x) = g(x) · (ε₀ + κ s(x)) + ε₁ · max(0, g(x) − G),    g(x) = max(0, (r(x) − r₅₀)/(r₉₅ − r₅₀)),

with r(x) the mean distance to the nearest training rows, r₅₀ and r₉₅ its quantiles over the
training rows (leave-one-out), and s(x) the ensemble's own standard deviation. At a training row
there is a datum, so the rule there is exact agreement, and that is what the networks are trained
on; the tolerance is for rows where there is none. G is the largest g of a training row: beyond it
nothing can be tested, so there the tolerance grows at a fixed rate ε₁, whatever ε₀ and κ were found
to be. It ends at the range of the targets.

Nothing says that errors end at ε. A tolerance that is chosen, not stated, therefore has a soft
edge: each member's σ² is widened by (ε/2)² before it is smoothed.

A choice is made on inner splits of the training rows: on random held-out rows ("in distribution")
and on the rows that an Isolation Forest finds most unusual ("out of distribution").
"""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from accord.proximity import Proximity
from accord.splits import outlier_split

Floats = NDArray[np.float64]
Choice = Literal["validate", "robust", "local"]
CHOICES: tuple[Choice, ...] = ("validate", "robust", "local")

# Candidates, as fractions of the targets' range; 0 is exact agreement (NLL). A constant tolerance
# takes training to try, a local one does not.
GRID = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
LOCAL_GRID = (0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2)
RELATIVE_GRID = (0.0, 0.5, 1.0, 2.0, 3.0)
# Softness of a chosen tolerance's edge.
EDGE = 0.5
# "local" may cost at most this much mean NLL on random held-out rows, as measured on inner splits.
IN_DISTRIBUTION_SLACK = 0.03
# Below this many rows there is nothing to choose on, and a moderate ε₀ and κ are used.
MIN_ROWS = 100
FALLBACK, RELATIVE_FALLBACK = 0.02, 1.0
# ε₁, as a fraction of the targets' range.
BEYOND_EVIDENCE = 0.02
_GROWTH_CAP = 20.0


class Growth:
    """g(x): 0 for rows as usual as the training rows' nearer half, 1 at their 95 % quantile.

    Attributes:
        proximity_: The distance to the training rows.
        start_, width_: r₅₀ and r₉₅ − r₅₀.
        farthest_: G, the largest value of a training row.
    """

    def fit(self, x: Floats) -> Self:
        """**Shape**: x (N, d)."""
        self.proximity_ = Proximity(random_state=0).fit(x)
        distances = self.proximity_.distance_leave_one_out()
        self.start_, high = np.quantile(distances, [0.5, 0.95])
        # rows all alike: any distance at all is unusual, and the cap bounds what follows
        self.width_ = max(high - self.start_, 1e-3 * max(high, 1e-12))
        self.farthest_ = (distances.max() - self.start_) / self.width_
        return self

    def __call__(self, x: Floats) -> Floats:
        """g before it is cut off at 0.

        **Shape**: x (N, d) → (N,).
        """
        return np.asarray((self.proximity_.distance(x) - self.start_) / self.width_)

    def half_width(self, values: Floats, *, unit: Floats, target_range: Floats) -> Floats:
        """ε(x) where the growth has these values and ``unit`` is ε₀ + κ s(x) in target units.

        **Shape**: values (N,); unit (N, T) or (T,); target_range (T,) → (N, T).
        """
        growth = values[:, None]
        beyond = BEYOND_EVIDENCE * (growth - self.farthest_).clip(min=0.0)
        half_width = growth.clip(0.0, _GROWTH_CAP) * unit + beyond * target_range
        return np.asarray(np.minimum(half_width, target_range))


@dataclass(frozen=True)
class ToleranceCurve:
    """Mean NLL against tolerance on the inner splits, and what was chosen.

    Attributes:
        values: (G,) tolerances tried, as fractions of the targets' range.
        in_distribution: (G,) mean NLL on random held-out rows; lower is better.
        out_of_distribution: (G,) mean NLL on the training rows' own outliers.
        chosen: The tolerance in use.
        relative: κ, the part in units of the ensemble's deviation; 0 unless tolerance is "local".
    """

    values: Floats
    in_distribution: Floats
    out_of_distribution: Floats
    chosen: float
    relative: float = 0.0


@dataclass(frozen=True)
class InnerSplit:
    """Rows to train on and rows to score a tolerance on."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    unusual: bool


def inner_splits(x: Floats, random_state: np.random.RandomState) -> list[InnerSplit]:
    """Random and outlier splits of the training rows, fewer where the rows are many.

    With N rows a split scores about N/10 of them, so that few splits say enough when N is large.
    """
    n_rows = len(x)
    n_each = 3 if n_rows < 3_000 else 2 if n_rows < 20_000 else 1
    splits = []
    for _ in range(n_each):
        order = random_state.permutation(n_rows)
        n_train = round(0.9 * n_rows)
        splits.append(InnerSplit(np.sort(order[:n_train]), np.sort(order[n_train:]), False))
        train, test = outlier_split(
            x, fraction=0.1, random_state=int(random_state.randint(2**31 - 1))
        )
        splits.append(InnerSplit(train, test, True))
    return splits


def choose(
    choice: Choice, values: Floats, relative: Floats, scores: Floats, unusual: NDArray[Any]
) -> ToleranceCurve:
    """The curve of mean scores, with the choice.

    ``scores`` hold the mean NLL of each split, tolerance and κ; ``unusual`` says which splits are
    outlier splits.

    **Shape**: scores (S, G, R); unusual (S,); values (G,); relative (R,).
    """
    inside, outside = scores[~unusual].mean(axis=0), scores[unusual].mean(axis=0)
    match choice:
        case "validate":
            target = inside
        case "robust":
            target = np.where(_widest_as_good(scores[unusual]), outside, np.inf)
        case "local":
            bearable = inside <= inside[0, 0] + IN_DISTRIBUTION_SLACK
            target = np.where(bearable, outside, np.inf)
    row, column = np.unravel_index(np.argmin(target), target.shape)
    return ToleranceCurve(
        values, inside[:, column], outside[:, column], float(values[row]), float(relative[column])
    )


def _widest_as_good(scores: Floats) -> NDArray[np.bool_]:
    """Where the widest tolerance stands that is as good as the best, to one standard error.

    Few outliers decide an outlier score. Where it cannot tell two tolerances apart, the wider one
    is the safer one.

    **Shape**: scores (S, G, R) → (G, R), true once.
    """
    mean = scores.mean(axis=0)
    best = np.unravel_index(np.argmin(mean), mean.shape)
    worse = scores - scores[:, best[0], best[1], None, None]
    n_splits = len(scores)
    error = worse.std(axis=0, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else 0.0 * mean
    good = worse.mean(axis=0) <= error
    widest: NDArray[np.bool_] = np.zeros(good.shape, dtype=bool)
    row = int(np.flatnonzero(good.any(axis=1))[-1])
    widest[row, int(np.argmin(np.where(good[row], mean[row], np.inf)))] = True
    return widest
