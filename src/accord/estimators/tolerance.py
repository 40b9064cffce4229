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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from accord._checks import check_finite, check_non_negative, check_not_nan, check_scalar
from accord._types import Bools, Floats, Indices
from accord.agreement import Exact, Rule, Share, Within
from accord.estimators.ensemble import ensemble_distribution
from accord.estimators.rules import Members, TrainingRule
from accord.estimators.trained import Rows
from accord.splits import outlier_split
from accord.training import Scaling
from accord.trust import Growth

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


def stated_half_width(tolerance: float | str, target_range: Floats) -> Floats:
    """A tolerance in target units: a number is one already, "1%" is of each target's range.

    **Shape**: target_range (T,) → (T,).

    >>> stated_half_width("1%", np.array([50.0, 200.0])), stated_half_width(0.5, np.array([50.0]))
    (array([0.5, 2. ]), array([0.5]))
    """
    if isinstance(tolerance, str):
        return percentage(tolerance) * target_range
    return np.full(len(target_range), float(tolerance))


def rule_for(
    rule: Rule | Share | None,
    tolerance: float | str,
    rows: Rows,
    shape: tuple[int, ...],
    *,
    unstated: float | str,
) -> Rule | Share:
    """The rule of agreement: the one that was stated, or else that of a stated tolerance.

    A rule comes without a tolerance, that is with the ``unstated`` one.

    **Shape**: rows.y (N, T), which users gave in ``shape``.
    """
    clash = sorted({"tolerance", "lower"} & set(rows.more))
    if clash or (rule is not None and tolerance != unstated):
        got = [f"y_{name}" for name in clash] or f"tolerance={tolerance!r}"
        raise ValueError(
            "a rule and y_dist must come without y_tolerance, y_lower and y_upper, and a rule "
            f"without tolerance, got {got}. Say all in the rule, as in "
            "y_rule=ErrorInside(lower, upper)."
        )
    if rule is not None:
        return rule
    if isinstance(tolerance, str) and not tolerance.strip().endswith("%"):
        raise ValueError(
            f"y_dist must come with a rule or a stated tolerance, got tolerance={tolerance!r}. "
            "Use tolerance=0 for exact agreement, a number, or a share of the range such as '1%'."
        )
    half_width = stated_half_width(tolerance, Scaling.range(rows.y).scale)
    if not half_width.any():
        return Exact()
    if len(half_width) == 1:
        return Within(float(half_width[0]))
    return Within(np.broadcast_to(half_width, shape).copy())


def check_tolerance(tolerance: float | str, *, words: Sequence[str] = ("learn", *CHOICES)) -> None:
    """Refuse what is neither a number, a percentage nor one of some words."""
    if isinstance(tolerance, str):
        if tolerance not in words:
            percentage(tolerance, words=words)
        return
    remedy = "Use 0 for exact agreement (NLL)."
    check_scalar("tolerance", tolerance)
    check_non_negative("tolerance", tolerance, remedy=remedy)
    check_finite("tolerance", tolerance, remedy=remedy)


def percentage(text: str, *, words: Sequence[str] = ("learn", *CHOICES)) -> float:
    """The share that "1%" stands for; a ``ValueError`` says what else may be written."""
    number = text.strip().removesuffix("%")
    try:
        value = float(number) if text.strip().endswith("%") else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < np.inf:
        raise ValueError(
            f"tolerance must be a number in target units, a percentage of the targets' range such "
            f"as '1%', or {_any_of(words)}, got {text!r}."
        )
    return value / 100


def _any_of(words: Sequence[str]) -> str:
    named = ", ".join(map(repr, words))
    return named if len(words) == 1 else f"one of {named}"


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

    train: Indices
    test: Indices
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


def _widest_as_good(scores: Floats) -> Bools:
    """Where the widest tolerance stands that is as good as the best, to one standard error.

    Few outliers decide an outlier score. Where it cannot distinguish two tolerances, the wider one
    is the safer one.

    **Shape**: scores (S, G, R) → (G, R), true once.
    """
    mean = scores.mean(axis=0)
    best = np.unravel_index(np.argmin(mean), mean.shape)
    worse = scores - scores[:, best[0], best[1], None, None]
    n_splits = len(scores)
    error = worse.std(axis=0, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else 0.0 * mean
    good = worse.mean(axis=0) <= error
    widest: Bools = np.zeros(good.shape, dtype=bool)
    row = int(np.flatnonzero(good.any(axis=1))[-1])
    widest[row, int(np.argmin(np.where(good[row], mean[row], np.inf)))] = True
    return widest


@dataclass(frozen=True)
class PlannedEnsemble:
    """An ensemble to train: its rows, its tolerance, and how the tolerance grows, if it is local.

    Rows that come with tolerances of their own use those; a local tolerance is 0 at the rows that
    it is trained on.

    **Shape**: tolerance (T,), in target units.
    """

    rows: Rows
    tolerance: Floats
    growth: Growth | None = None
    kept_range: Floats | None = None  # in place of these rows' own
    rule: TrainingRule | None = None  # in place of the tolerance

    @property
    def is_density(self) -> bool:
        """Whether the loss is that of a density of the targets; a rule may imply none."""
        return self.rule is None or self.rule.kernel is not None

    @property
    def target_range(self) -> Floats:
        """(T,) range of the targets, 1 where they are constant."""
        return Scaling.range(self.rows.y).scale if self.kept_range is None else self.kept_range

    def columns(self, y_scaling: Scaling) -> dict[str, Floats]:
        """What the objective needs of each row, in scaled units."""
        if self.rule is not None:
            return self.rule.columns(self.rows.y, y_scaling)
        rows, scale = self.rows, y_scaling.scale
        columns = {"target": y_scaling.scaled(rows.y)}
        constant = 0.0 if self.growth is not None else self.tolerance
        half_width = rows.more.get("tolerance", np.broadcast_to(constant, rows.y.shape))
        columns["tolerance"] = half_width / scale
        if "std" in rows.more:
            columns["noise"] = (rows.more["std"] / scale) ** 2
        for name in ("lower", "upper"):
            if name in rows.more:
                columns[name] = y_scaling.scaled(rows.more[name])
        return columns


@dataclass(frozen=True)
class ToleranceRule:
    """The tolerance at new rows, in target units.

    **Shape**: tolerance and target_range (T,); ``at`` gives (N, T) for N rows.
    """

    tolerance: Floats
    target_range: Floats
    growth: Growth | None = None
    relative: float = 0.0

    def at(self, growth_values: Floats | None, mean: Floats, std: Floats) -> Floats:
        """ε(x) from the growth at the rows and the members' moments there, each (M, N, T)."""
        if self.growth is None or growth_values is None:
            return np.broadcast_to(self.tolerance, mean.shape[1:])
        total = np.sqrt((std**2).mean(axis=0) + mean.var(axis=0))
        unit = self.tolerance + self.relative * total
        return self.growth.half_width(growth_values, unit=unit, target_range=self.target_range)


def softened(std: Floats, half_width: Floats) -> Floats:
    """Deviations widened by the soft edge of a chosen tolerance."""
    return np.asarray(np.hypot(std, EDGE * half_width))


def known_rows(rows: Rows) -> Rows:
    """Those whose targets are all known, and not only bounded."""
    if "lower" not in rows.more:
        return rows
    known = (rows.more["lower"] == rows.more["upper"]).all(axis=1)
    return rows[np.flatnonzero(known)]


def mean_losses(
    rules: list[ToleranceRule],
    test: Rows,
    family: Members,
    moments: tuple[Floats, Floats],
    growth: Floats | None,
) -> list[float]:
    """Mean NLL of rows under each tolerance.

    ``family`` makes distributions of the members' moments, mean and standard deviation.
    """
    weight = test.weight if test.weight is not None and test.weight.any() else None
    mean, std = moments
    if "std" in test.more:
        std = np.hypot(std, test.more["std"])
    scores = []
    for rule in rules:
        eps = rule.at(growth, mean, std)
        dist = ensemble_distribution(family(mean, softened(std, eps)), tolerance=eps)
        losses = -np.asarray(dist.log_prob(test.y))
        scores.append(float(np.average(losses.mean(axis=1), weights=weight)))
    return scores


@dataclass(frozen=True)
class Search:
    """A choice of tolerance: every candidate on every inner split of the rows."""

    choice: Choice
    candidates: list[PlannedEnsemble]
    tests: list[Rows]  # of each candidate: rows that it is not trained on
    unusual: Bools  # whether each split is an outlier split

    @staticmethod
    def over(choice: Choice, rows: Rows, random_state: np.random.RandomState) -> "Search":
        splits = inner_splits(rows.x, random_state)
        trained = (0.0,) if choice == "local" else GRID
        candidates, tests = [], []
        for split in splits:
            inner = rows[split.train]
            growth, unit = growth_for(choice, inner), Scaling.range(inner.y).scale
            candidates += [PlannedEnsemble(inner, value * unit, growth) for value in trained]
            tests += [rows[split.test]] * len(trained)
        return Search(choice, candidates, tests, np.array([split.unusual for split in splits]))

    def rules(self, candidate: PlannedEnsemble) -> list[ToleranceRule]:
        """The tolerances to score a trained candidate with."""
        target_range, growth = candidate.target_range, candidate.growth
        if self.choice != "local":
            return [ToleranceRule(candidate.tolerance, target_range)]
        pairs = [(value, kappa) for value in LOCAL_GRID for kappa in RELATIVE_GRID]
        return [
            ToleranceRule(value * target_range, target_range, growth, kappa)
            for value, kappa in pairs
        ]

    def choose(self, scores: list[list[float]]) -> ToleranceCurve:
        """The curve and the choice, from each candidate's mean NLL under each of its rules."""
        local = self.choice == "local"
        values, relative = (LOCAL_GRID, RELATIVE_GRID) if local else (GRID, (0.0,))
        table = np.reshape(scores, (len(self.unusual), len(values), len(relative)))
        return choose(self.choice, np.array(values), np.array(relative), table, self.unusual)


def growth_for(choice: str, rows: Rows) -> Growth | None:
    """How the tolerance grows away from these rows, if it is local."""
    return Growth().fit(rows.x) if choice == "local" and len(rows) > 1 else None


def target_knowledge(
    y: Floats, *, tolerance: Any = None, std: Any = None, lower: Any = None, upper: Any = None
) -> dict[str, Floats]:
    """What a user knows of targets besides their values, each of the shape of y, as far as given.

    Keys are ``tolerance``, ``std``, ``lower`` and ``upper``; known rows get lower = upper = y.

    **Shape**: y (N, T).
    """
    known: dict[str, Floats] = {}
    if tolerance is not None:
        known["tolerance"] = _column("y_tolerance", tolerance, y)
        check_non_negative("y_tolerance", known["tolerance"], remedy="Use 0 for exact agreement.")
        check_finite("y_tolerance", known["tolerance"], remedy="Leave out rows that say nothing.")
    if std is not None:
        known["std"] = _column("y_std", std, y)
        check_non_negative("y_std", known["std"], remedy="Use 0 for a target without error.")
    if lower is not None or upper is not None:
        known |= _bounds(y, lower, upper)
    return known


def _bounds(y: Floats, lower: Any, upper: Any) -> dict[str, Floats]:
    """Both ends of each target: NaN is no bound, and a target with no bound is known."""
    low = _column("y_lower", np.nan if lower is None else lower, y)
    high = _column("y_upper", np.nan if upper is None else upper, y)
    unstated = np.isnan(low) | np.isnan(high)
    known = unstated & ~np.isfinite(low) & ~np.isfinite(high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    low, high = np.where(known, y, low), np.where(known, y, high)
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


def _column(name: str, values: Any, y: Floats) -> Floats:
    """``values`` as (N, T): one value for all, one per row, or one per row and target."""
    column = np.asarray(values, dtype=np.float64)
    if column.ndim == 1:
        column = column[:, None]
    if column.ndim not in (0, 2) or (column.ndim == 2 and len(column) != len(y)):
        raise ValueError(
            f"{name} must be a number or have a value per row ({len(y)}), got shape "
            f"{np.shape(values)}."
        )
    if not name.startswith(("y_lower", "y_upper")):
        check_not_nan(name, column)
    return np.broadcast_to(column, y.shape).astype(np.float64)
