"""What is to hold away from the data, and whether it does."""

from collections.abc import Iterable, Iterator

import numpy as np

from accord.paper.claims import LEVEL, JudgedClaim, decided, fact
from accord.paper.results import MeanOverSplits, Results
from accord.paper.sets import title
from accord.paper.shift import controls
from accord.paper.shift.comparison import NAME, compared, values
from accord.paper.shift.families import RANDOM
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
from accord.paper.shift.plan import CONTROLLED
from accord.paper.study import Source
from accord.paper.tables import formatted

__all__ = ["COVERED", "beyond"]

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


def _named(place: tuple[str, str, int]) -> str:
    family, dataset, split = place
    return f"{title(dataset)}, {family}" + (f" {split + 1}" if family == "time" else "")


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
        controls.SHIFTED: f"a column of noise shifted by {controls.SHIFT:g} deviations",
        controls.SHUFFLED: "a column of noise shuffled",
        controls.ADDED: "five columns of noise added",
    }
    for control in controls.CONTROLS:
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
