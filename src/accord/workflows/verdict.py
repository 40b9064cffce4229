"""Do the intervals hold, and are they any use? Both questions, answered in one sentence."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from accord._types import Floats
from accord._wording import count, number, percent, printable, units_of
from accord.tabular import Assessment, RowGroup

Level = Literal["good", "caution", "poor"]
Belief = Literal["holds", "does not hold", "too few rows"]

# A shortfall below one percentage point does not matter, however many rows prove it.
NEGLIGIBLE = 0.01
# With more of its rows trained on, a table cannot test a model.
MOSTLY_SEEN = 0.5
TRAINED_ON = "Most of these rows equal rows that the model was trained on: they cannot test it."
# With fewer misses than this above the stated ones, intervals still count as holding.
_LARGEST_MARGIN = 0.1
# Intervals must be this much narrower than without a model to be called useful.
_USEFUL = 0.95
# … and of use for a typical row, if the median is so much narrower.
_TYPICAL = 0.5
# Wider than a linear model's by more than this, a linear model would serve better.
_EXCESS = 0.05
_BOTH = "Reliable and useful"
# Below this R² the columns say little about the target, unless a typing error made it so: then
# intervals are narrow all the same.
_WEAK = 0.1
# How many times as wide: beyond this, the number says nothing more.
_COUNTED = 100

RULE = (
    "Intervals hold if the exact 95 % confidence range of their coverage excludes twice as many "
    "misses as stated, and reaches the stated coverage or ends less than one percentage point "
    "below it. They do not hold if the whole range lies further below. In all other cases there "
    "are too few rows to tell."
)

QUARTILES = ("lowest quarter", "second quarter", "third quarter", "highest quarter")

_RANK: dict[Level, int] = {"good": 0, "caution": 1, "poor": 2}


@dataclass(frozen=True)
class Verdict:
    """A judgement: how good, in a sentence, and in the sentences that support it.

    ``short`` is the same judgement in a few words.
    """

    level: Level
    headline: str
    summary: str
    remarks: tuple[str, ...] = ()
    short: str = ""


@dataclass(frozen=True)
class Reliability:
    """Whether intervals contain what they state, as far as these rows can tell.

    ``low`` and ``high`` are the ends of the coverage's exact 95 % confidence range.
    """

    belief: Belief
    stated: float
    covered: float
    low: float
    high: float
    rows: int

    @property
    def level(self) -> Level:
        levels: dict[Belief, Level] = {
            "holds": "good",
            "too few rows": "caution",
            "does not hold": "poor",
        }
        return levels[self.belief]

    @property
    def too_wide(self) -> bool:
        """Whether the intervals contain more than they state, beyond chance."""
        return self.low > self.stated

    def clause(self) -> str:
        """The finding, as the beginning of a sentence."""
        name = f"{percent(self.stated)} intervals"
        if self.belief == "holds":
            return f"The {name} hold"
        if self.belief == "does not hold":
            return f"The {name} do not hold"
        return f"Too few rows to tell whether the {name} hold"

    def confidence(self) -> str:
        return f"confidence range {percent(self.low, 0)} to {percent(self.high, 0)}"


def reliability(found: Assessment) -> Reliability:
    """The same test for every command: see ``RULE``.

    >>> from accord.distributions import Normal
    >>> y = np.linspace(-1.9, 1.9, 20)
    >>> rows = np.arange(20)
    >>> found = Assessment.of(Normal(np.zeros(20), 1.0), y, rows=rows, coverage=0.95)
    >>> reliability(found).belief
    'too few rows'
    """
    stated, (low, high) = found.coverage, found.covered_range
    if high < stated - NEGLIGIBLE:
        belief: Belief = "does not hold"
    elif low >= least_coverage(stated):
        belief = "holds"
    else:
        belief = "too few rows"
    return Reliability(belief, stated, found.covered, low, high, len(found))


def least_coverage(stated: float) -> float:
    """The coverage above which intervals still count as holding: about twice the stated misses.

    >>> round(least_coverage(0.95), 3), round(least_coverage(0.5), 3)
    (0.9, 0.4)
    """
    return stated - min(1 - stated, _LARGEST_MARGIN)


@dataclass(frozen=True)
class Use:
    """Widths of intervals: the model's, and those that it takes without one.

    ``without_model`` is the interval that contains as many of the target's own values; ``linear``
    that of a linear model, None where there is none to compare with.
    """

    mean_width: float
    median_width: float
    without_model: float
    linear: float | None = None

    @property
    def ratio(self) -> float:
        return self.mean_width / self.without_model if self.without_model > 0 else float("inf")

    @property
    def skewed(self) -> bool:
        """Whether most rows gain much, and few wide ones make the mean: the target has long tails.

        A mean of widths says little then.
        """
        narrow = self.median_width <= _TYPICAL * self.without_model
        return narrow and _USEFUL < self.ratio < float("inf")

    @property
    def excess(self) -> float:
        """By what share the intervals are wider than a linear model's; 0 where they are not."""
        return max(0.0, self.mean_width / self.linear - 1) if self.linear else 0.0

    @property
    def level(self) -> Level:
        if self.ratio >= 1 and not self.skewed:
            return "poor"
        return "good" if self.ratio <= _USEFUL and self.excess <= _EXCESS else "caution"

    def clause(self) -> str:
        """The finding, as the end of a sentence."""
        if self.ratio <= _USEFUL and self.excess > _EXCESS:
            return (
                f"are {_saved(self.ratio)} narrower than without a model, but "
                f"{percent(self.excess, 0)} wider than those of a linear model"
            )
        if self.ratio <= _USEFUL:
            return f"are {_saved(self.ratio)} narrower than without a model{self._beside()}"
        if self.skewed:
            typical = self.median_width / self.without_model
            return (
                f"are {_saved(typical)} narrower than without a model for a typical row, though "
                "not in mean, which few wide ones decide"
            )
        if self.ratio < 1:
            return "are hardly narrower than without a model"
        return "are no narrower than without a model"

    def _beside(self) -> str:
        """How much narrower than a linear model's, where that is worth a word."""
        ratio = self.mean_width / self.linear if self.linear else 1.0
        return f", {_saved(ratio)} narrower than with a linear one" if 1 - ratio > _EXCESS else ""

    def sentence(self, target: str) -> str:
        linear = f", with a linear model {number(self.linear)}" if self.linear else ""
        units = units_of(printable(target))
        return (
            f"Interval width in {units}: mean {number(self.mean_width)}, median "
            f"{number(self.median_width)}; without a model {number(self.without_model)}{linear}."
        )


def _saved(ratio: float) -> str:
    """What is saved of a width; never all of it."""
    return percent(1 - ratio, 0) if ratio >= 0.005 else "over 99 %"


def use_of(found: Assessment, *, linear: float | None = None) -> Use:
    """The width of intervals beside that of the target's own distribution."""
    without = float(marginal_width(found.y, found.coverage))
    return Use(found.mean_width, found.median_width, without, linear)


def marginal_width(y: Floats, coverage: float | Floats) -> Floats:
    """Width of the interval that contains such a share of the values without any model.

    **Shape**: that of ``coverage``.
    """
    tail = (1 - coverage) / 2
    low, high = np.quantile(y, [tail, 1 - tail])
    return np.asarray(high - low)


def fit_verdict(held_out: Assessment, shifted: Assessment, use: Use, *, target: str) -> Verdict:
    """The judgement on a model from rows held out, at random and for being unusual."""
    usual, unusual = reliability(held_out), reliability(shifted)
    level = worst(usual.level, use.level)
    if usual.belief == "holds" and unusual.belief == "does not hold":
        level = worst(level, "caution")
        headline = (
            f"{usual.clause()} for rows like these, but not for the most unusual ones. They "
            f"{use.clause()}."
        )
    else:
        headline = _joined(usual, use)
    return Verdict(
        level,
        headline,
        f"{_inside(usual, 'held-out row')} {use.sentence(target)} {_of_unusual(unusual)}".strip(),
        _remarks(held_out, shifted, usual, use),
        in_short(usual, use, unusual),
    )


def in_short(judged: Reliability, use: Use, unusual: Reliability | None = None) -> str:
    """Can it be relied on, and is it any use: one answer to both in a few words.

    Nothing is called reliable whose intervals are no narrower than without a model.
    """
    if judged.belief == "does not hold":
        return "Not reliable"
    if use.ratio >= 1 and not use.skewed:
        return "Of no use: no narrower than without a model"
    if judged.belief == "too few rows":
        return "Too few rows to tell"
    if use.skewed:
        return "Narrow for most rows, but not in mean"
    if use.ratio > _USEFUL:
        return "Of little use: hardly narrower than without a model"
    if unusual is not None and unusual.belief == "does not hold":
        return "Useful, but not reliable for unusual rows"
    return "Reliable, but a linear model is sharper" if use.excess > _EXCESS else _BOTH


def evaluation_verdict(found: Assessment, use: Use, *, target: str, seen: float) -> Verdict:
    """The judgement on a model from new labelled rows; ``seen`` is the share of training rows."""
    judged = reliability(found)
    summary = f"{_inside(judged, 'row')} {use.sentence(target)}"
    if seen > MOSTLY_SEEN:
        return Verdict(
            "caution",
            TRAINED_ON,
            summary,
            short="No test: rows equal to training rows",
        )
    level = worst(judged.level, use.level)
    headline = _joined(judged, use)
    return Verdict(level, headline, summary, short=in_short(judged, use))


def belief_sentence(judged: Reliability, use: Use) -> str:
    """Whether stated uncertainty can be believed and is of use, for predictions from anywhere."""
    inside = f"{percent(judged.covered)} of {count(judged.rows, 'row')} lie inside"
    if judged.belief == "too few rows":
        return (
            f"Too few rows to tell whether the stated uncertainty can be believed: {inside} "
            f"({judged.confidence()}). The intervals {use.clause()}."
        )
    if judged.belief == "does not hold":
        opening = "The stated uncertainty is too small"
    elif judged.too_wide:
        opening = "The stated uncertainty can be believed, and is larger than it needs to be"
    else:
        opening = "The stated uncertainty can be believed"
    found = f"{inside} their {percent(judged.stated)} intervals ({judged.confidence()})"
    if judged.belief == "holds" and use.level != "good":
        return f"{opening}, but the intervals {use.clause()}: {found}."
    return f"{opening}: {found}."


def worst(*levels: Level) -> Level:
    """The least favourable of several levels."""
    return max(levels, key=_RANK.__getitem__)


def _joined(judged: Reliability, use: Use) -> str:
    """Reliability and use in one sentence."""
    clause = judged.clause()
    if judged.belief == "does not hold":
        return f"{clause}: {percent(judged.covered)} of the rows lie inside. They {use.clause()}."
    if judged.belief == "too few rows":
        return f"{clause} ({judged.confidence()}); they {use.clause()}."
    return f"{clause}{' and' if use.ratio <= _USEFUL else ', but'} {use.clause()}."


def _inside(judged: Reliability, what: str) -> str:
    return (
        f"{percent(judged.covered)} of {count(judged.rows, what)} lie in their "
        f"{percent(judged.stated)} interval ({judged.confidence()})."
    )


def _of_unusual(judged: Reliability) -> str:
    if not judged.rows:
        return ""
    ends = {
        "holds": "the intervals hold there too",
        "does not hold": "the intervals do not hold there",
        "too few rows": "too few rows to tell",
    }
    return (
        f"Of the {count(judged.rows, 'most unusual row')}, predicted by models that had seen no "
        f"rows like them, {percent(judged.covered)} lie inside: {ends[judged.belief]} "
        f"({judged.confidence()})."
    )


def _remarks(
    held_out: Assessment, shifted: Assessment, judged: Reliability, use: Use
) -> tuple[str, ...]:
    remarks = []
    if use.excess > _EXCESS:
        remarks.append("A linear model's intervals would be narrower: consider one.")
    if judged.too_wide:
        remarks.append("The intervals contain more than they state: they could be narrower.")
    if held_out.figures()["r2"] < _WEAK and use.ratio > _USEFUL:
        remarks.append(
            "The columns say little about the target: predictions differ little from its mean."
        )
    if len(shifted) and shifted.mean_width > 1.5 * held_out.mean_width:
        ratio = shifted.mean_width / held_out.mean_width
        times = number(ratio, 2) if ratio <= _COUNTED else f"over {_COUNTED}"
        remarks.append(
            f"For unusual rows the intervals are {times} times as wide: less is known there."
        )
    for group in held_out.groups(held_out.mean, QUARTILES):
        if _falls_short(group, judged.stated):
            inside = percent(group.covered)
            remarks.append(f"In the {group.title} of the predictions, only {inside} lie inside.")
    return tuple(remarks)


def _falls_short(group: RowGroup, stated: float) -> bool:
    """Whether a group's coverage is below the stated one by more than chance and a margin."""
    error = np.sqrt(stated * (1 - stated) / group.rows)
    return bool(stated - group.covered > max(3 * error, 0.02))
