"""What is to hold away from the data, and whether it does, by methods compared split by split.

A difference is judged by Wilcoxon's signed-rank test. Splits of one set share rows, so the sets are
its units: each has one vote, the median difference over its splits.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from accord._types import Floats
from accord.paper.claims import LEVEL, JudgedClaim, Outcome, decided, fact
from accord.paper.results import MeanOverSplits, Results
from accord.paper.sets import title
from accord.paper.shift.answers import (
    ADDED,
    CONTROLLED,
    CONTROLS,
    FAMILIES,
    RANDOM,
    SHIFT,
    SHIFTED,
    SHIFTS,
    SHUFFLED,
)
from accord.paper.shift.methods import (
    ACCORD,
    BARE,
    DEEP,
    FREE,
    GLOBAL,
    LOCAL,
    MARGINAL,
    methods,
)
from accord.paper.stacks import Record
from accord.paper.study import Source
from accord.paper.tables import formatted

NAME = "shift"
Place = tuple[str, str, int]  # family, dataset, split


def family_of(place: Place) -> str:
    """The family, and the moment if it is in time."""
    family, _, split = place
    return f"{family} {split + 1}" if family == "time" else family


def records(results: Results, method: str, families: Sequence[str] = SHIFTS) -> dict[Place, Record]:
    """A method's records by family, dataset and split, in the order of the families."""
    return {
        (family, dataset, record.split): record
        for family in families
        for dataset in FAMILIES[family]
        for record in results.at(dataset, Source(NAME, method, family))
    }


def values(
    results: Results, method: str, measure: str, families: Sequence[str] = SHIFTS
) -> dict[Place, float]:
    """A measure of a method on every split."""
    found = records(results, method, families)
    return {place: record.measures[measure] for place, record in found.items()}


class Comparison(NamedTuple):
    """Ours − theirs: the median over splits, how often ours is lower, and Wilcoxon's p.

    ``p_sets`` is that of the sets' median differences, ``p_splits`` that of all splits.
    """

    median: float
    lower: int
    n: int
    n_sets: int
    p_sets: float
    p_splits: float

    def outcome(self, level: float = LEVEL) -> Outcome:
        """Whether ours is lower."""
        if self.p_sets >= level:
            return "undecided"
        return "holds" if self.median < 0 else "does not hold"

    def text(self) -> str:
        median = f"{self.median:+.3f}".replace("-", "−")
        return (
            f"median difference {median}; lower on {self.lower} of {self.n} splits; "
            f"p = {self.p_sets:.2g} over {self.n_sets} sets, {self.p_splits:.2g} over splits"
        )


def compared(results: Results, ours: str, theirs: str, measure: str) -> Comparison | None:
    """Two methods on the splits that both have; None without any."""
    one, two = (values(results, method, measure) for method in (ours, theirs))
    gaps = {place: one[place] - two[place] for place in one if place in two}
    if not gaps:
        return None
    by_set: dict[str, list[float]] = {}
    for (_, dataset, _), gap in gaps.items():
        by_set.setdefault(dataset, []).append(gap)
    all_gaps = np.array(list(gaps.values()))
    of_sets = np.array([np.median(own) for own in by_set.values()])
    return Comparison(
        float(np.median(all_gaps)),
        int((all_gaps < 0).sum()),
        len(all_gaps),
        len(of_sets),
        _p(of_sets),
        _p(all_gaps),
    )


def _p(gaps: Floats) -> float:
    """Two-sided; 1 where nothing differs."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(gaps).pvalue) if np.any(gaps) else 1.0


WHERE = "Shift"
# A 90 % interval that covers this share of a split's rows is taken to hold there …
COVERED = 0.85
# … and has to on so many of the splits.
_SPLITS = 0.8
_COST = 0.03
_GROWTH = 0.05


def beyond(results: Results) -> Iterable[JudgedClaim]:
    """All verdicts of the study."""
    yield _covers(results)
    yield _never_worse(results)
    for ours, without in ((ACCORD, BARE), (LOCAL, DEEP)):
        yield _cost(results, ours, without)
    pairs = [(ACCORD, BARE), (LOCAL, DEEP), (LOCAL, GLOBAL), (LOCAL, FREE)]
    for ours, theirs in pairs:
        yield _lower(results, ours, theirs, LEVEL)
    rivals = [method.name for method in methods() if method.name not in (ACCORD, BARE)]
    for theirs in rivals:
        yield _lower(results, ACCORD, theirs, LEVEL / len(rivals))
    yield from _controls(results)


def _covers(results: Results) -> JudgedClaim:
    found = values(results, ACCORD, "coverage90")
    claim = "90 % intervals cover 85 % or more on at least four fifths of the shifted splits"
    if not found:
        return fact(WHERE, claim, ACCORD, None, "")
    short = {place: share for place, share in found.items() if share < COVERED}
    n_good = len(found) - len(short)
    worst = sorted(short.items(), key=lambda item: item[1])
    named = ", ".join(f"{_named(place)} {100 * share:.0f} %" for place, share in worst)
    text = f"{n_good} of {len(found)}" + (f"; below: {named}" if named else "")
    return fact(WHERE, claim, ACCORD, n_good >= _SPLITS * len(found), text)


def _never_worse(results: Results) -> JudgedClaim:
    claim = "NLL under shift never above that of the target's own marginal distribution"
    ours, theirs = (values(results, method, "nll") for method in (ACCORD, MARGINAL))
    if not ours:
        return fact(WHERE, claim, ACCORD, None, "")
    above = {place: ours[place] - theirs[place] for place in ours if ours[place] > theirs[place]}
    named = ", ".join(f"{_named(place)} (by {gap:.2f})" for place, gap in above.items())
    text = f"below on {len(ours) - len(above)} of {len(ours)}" + (f"; not {named}" if named else "")
    return fact(WHERE, claim, ACCORD, not above, text)


def _named(place: Place) -> str:
    return f"{title(place[1])}, {family_of(place)}"


def _cost(results: Results, ours: str, without: str) -> JudgedClaim:
    """The mean over sets, by its confidence interval."""
    claim = f"on random rows the local tolerance costs no more than {_COST} nats"
    one, two = (values(results, method, "nll", [RANDOM]) for method in (ours, without))
    if not one:
        return fact(WHERE, claim, ours, None, "")
    gaps = MeanOverSplits.over([one[place] - two[place] for place in one])
    worst = max(one, key=lambda place: one[place] - two[place])
    text = (
        f"mean {formatted(gaps, 3)} over {gaps.n} sets; most on {title(worst[1])}, "
        f"{one[worst] - two[worst]:.3f}"
    )
    return JudgedClaim(WHERE, claim, ours, decided(gaps, below=_COST), text)


def _lower(results: Results, ours: str, theirs: str, level: float) -> JudgedClaim:
    claim = f"NLL under shift below that of: {theirs}"
    found = compared(results, ours, theirs, "nll")
    if found is None:
        return fact(WHERE, claim, ours, None, "")
    return JudgedClaim(WHERE, claim, ours, found.outcome(level), found.text())


def _controls(results: Results) -> Iterator[JudgedClaim]:
    words = {
        SHIFTED: f"a column of noise shifted by {SHIFT:g} deviations",
        SHUFFLED: "a column of noise shuffled",
        ADDED: "five columns of noise added",
    }
    for control in CONTROLS:
        claim = f"{words[control]} widens no set's 90 % intervals by more than 5 %"
        found = {
            dataset: growth
            for dataset in CONTROLLED
            for growth in [results.estimate(dataset, Source(NAME, ACCORD, control), "growth")]
            if growth is not None
        }
        if not found:
            yield fact(WHERE, claim, ACCORD, None, "")
            continue
        over = [name for name, growth in found.items() if growth.value > _GROWTH]
        mean = 100 * float(np.mean([growth.value for growth in found.values()]))
        named = ", ".join(f"{title(name)} {100 * found[name].value:+.0f} %" for name in over)
        text = f"{len(found) - len(over)} of {len(found)} sets; mean {mean:+.1f} %"
        text = (text + (f"; not {named}" if over else "")).replace("-", "−")
        yield fact(WHERE, claim, ACCORD, not over, text)
