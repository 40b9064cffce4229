"""Whether intervals can be believed, said in words."""

from dataclasses import dataclass
from typing import Literal

from accord.tables import printable
from accord.workflows.assessment import Assessment
from accord.workflows.wording import number, percent

Level = Literal["good", "caution", "poor"]
Finding = Literal["holds", "cautious", "slightly narrow", "narrow"]

# Missing the stated coverage by less than this is worth a word, by more a warning.
_SLIGHT = 0.05
# Below this R² the columns hardly tell rows apart.
_WEAK = 0.1


@dataclass(frozen=True)
class Verdict:
    """A judgement: how good, in a line, and in the sentences that support it."""

    level: Level
    headline: str
    summary: str
    remarks: tuple[str, ...] = ()


def finding(assessment: Assessment) -> Finding:
    """How the observed coverage compares with the stated one, allowing for the number of rows."""
    low, high = assessment.covered_range
    if high < assessment.coverage:
        slight = assessment.coverage - assessment.covered <= _SLIGHT
        return "slightly narrow" if slight else "narrow"
    return "cautious" if low > assessment.coverage else "holds"


LEVELS: dict[Finding, Level] = {
    "holds": "good",
    "cautious": "good",
    "slightly narrow": "caution",
    "narrow": "poor",
}
BELIEF: dict[Finding, str] = {
    "holds": "the stated uncertainty can be believed.",
    "cautious": "the stated uncertainty is larger than it needs to be.",
    "slightly narrow": "the stated uncertainty is a little too small.",
    "narrow": "the stated uncertainty is too small to be believed.",
}
_ON_NEW_ROWS: dict[Finding, str] = {
    "holds": "The intervals hold on these rows.",
    "cautious": "The intervals hold on these rows, and are wider than needed.",
    "slightly narrow": "The intervals are a little too narrow on these rows.",
    "narrow": "The intervals do not hold on these rows.",
}
_FIT: dict[tuple[bool, bool], tuple[Level, str]] = {
    (True, True): ("good", "The intervals hold, also for unusual rows."),
    (True, False): ("caution", "The intervals hold for rows like these, but not for unusual ones."),
    (False, True): ("caution", "The intervals are a little too narrow."),
    (False, False): ("poor", "The intervals are too narrow: do not rely on them yet."),
}


def fit_verdict(random: Assessment, unusual: Assessment, *, target: str) -> Verdict:
    """The judgement on a model from rows held out at random and from the most unusual rows."""
    inside, outside = finding(random), finding(unusual)
    holds = inside in ("holds", "cautious"), outside in ("holds", "cautious")
    level, headline = _FIT[holds]
    if inside == "narrow":
        level, headline = _FIT[False, False]
    elif holds == (True, False) and outside == "slightly narrow":
        headline = "The intervals hold for rows like these, and almost for unusual ones."
    elif holds == (False, False):
        level, headline = "caution", "The intervals are a little too narrow."
    return Verdict(
        level,
        headline,
        coverage_sentence(random, unusual, target=target),
        _remarks(random, unusual),
    )


def coverage_sentence(random: Assessment, unusual: Assessment, *, target: str) -> str:
    """The plain summary of a fit."""
    return (
        f"{percent(random.coverage)} intervals cover {percent(random.covered)} of held-out rows "
        f"and {percent(unusual.covered)} of the most unusual ones; typical width "
        f"{number(random.typical_width)} ({printable(target)})."
    )


def _remarks(random: Assessment, unusual: Assessment) -> tuple[str, ...]:
    remarks = []
    if finding(random) == "cautious":
        remarks.append("The intervals are wider than they need to be.")
    if random.figures()["r2"] < _WEAK:
        remarks.append(
            "The columns say little about the target: predictions differ little from its mean."
        )
    if unusual.typical_width > 1.5 * random.typical_width:
        ratio = unusual.typical_width / random.typical_width
        remarks.append(
            f"For unusual rows the intervals are {number(ratio, 2)} times as wide: less is known "
            "there."
        )
    low, high = unusual.covered_range
    if high - low > 0.2:
        remarks.append(
            f"Only {len(unusual)} unusual rows were there to test on: their true coverage may be "
            f"anywhere from {percent(low, 0)} to {percent(high, 0)}."
        )
    return tuple(remarks)


def evaluation_verdict(found: Assessment, *, target: str, drifted: bool) -> Verdict:
    """The judgement on a model from new labelled rows."""
    kind = finding(found)
    level, headline = LEVELS[kind], _ON_NEW_ROWS[kind]
    if drifted and level == "good":
        level, headline = "caution", headline[:-1] + ", but the data have drifted."
    summary = (
        f"{percent(found.coverage)} intervals cover {percent(found.covered)} of "
        f"{len(found):,} rows; typical width {number(found.typical_width)} ({printable(target)})."
    )
    return Verdict(level, headline, summary)
