"""The records of ``portfolio.py`` as Markdown: tables per kind of split, and targets reached."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Records = list[dict[str, Any]]
# Those that the NLL is compared with; the marginal and the quantiles are references only.
RIVALS = ("ensembles", "gp", "ngboost", "catboost", "ridge")
# Mean NLL in the targets' own units on the standard splits: the best published from scratch.
PUBLISHED_NLL = {
    "boston": 2.35,
    "concrete": 2.83,
    "energy": 0.53,
    "kin8nm": -1.37,
    "naval": -7.0,
    "power": 2.60,
    "protein": 2.35,
    "wine": 0.90,
    "yacht": 0.0,
}


class Gap(NamedTuple):
    """Ours minus theirs on the splits that both have: mean, standard error, the peer."""

    mean: float
    error: float
    peer: str

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f" ± {self.error:.2f}"
        return f"{self.mean:+.2f}{error}"


class Figures:
    """The records of one kind of split, by set and method."""

    def __init__(self, records: Records) -> None:
        self._by_key = {(r["dataset"], r["method"], r["split"]): r for r in records}
        self.splits = sorted({r["split"] for r in records})

    def values(self, dataset: str, method: str, figure: str) -> dict[int, float]:
        """A figure by split, without those that the method does not give."""
        keys = ((split, (dataset, method, split)) for split in self.splits)
        found = {split: self._by_key[key][figure] for split, key in keys if key in self._by_key}
        return {split: value for split, value in found.items() if value is not None}

    def mean(self, dataset: str, method: str, figure: str) -> float:
        """Over the splits; NaN if there is none."""
        values = list(self.values(dataset, method, figure).values())
        return float(np.mean(values)) if values else float("nan")

    def error(self, dataset: str, method: str, figure: str) -> float:
        return standard_error(list(self.values(dataset, method, figure).values()))

    def gap(self, dataset: str, figure: str) -> Gap | None:
        """Distance to the peer that is best on the splits it shares with ours."""
        ours = self.values(dataset, "accord", figure)
        gaps = []
        for peer in RIVALS:
            theirs = self.values(dataset, peer, figure)
            apart = [ours[split] - theirs[split] for split in ours.keys() & theirs.keys()]
            if apart:
                gaps.append(Gap(float(np.mean(apart)), standard_error(apart), peer))
        return max(gaps, default=None)

    def best_peer(self, dataset: str, figure: str) -> str:
        """The peer with the lowest mean, for tables without our own figures."""
        means = {peer: self.mean(dataset, peer, figure) for peer in RIVALS}
        known = {peer: mean for peer, mean in means.items() if not np.isnan(mean)}
        return min(known, key=known.__getitem__) if known else "–"


def standard_error(values: Sequence[float]) -> float:
    """NaN below two values."""
    if len(values) < 2:
        return float("nan")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def page(records: Records, sets: Sequence[str], kinds: Sequence[str]) -> Iterator[str]:
    """Every table, in Markdown."""
    for kind in kinds:
        figures = Figures([record for record in records if record["kind"] == kind])
        if figures.splits:
            yield from ("", f"## {kind}: {len(figures.splits)} splits at most", "")
            yield from nll_table(figures, sets)
            yield ""
            yield from interval_table(figures, sets)
            yield ""
            yield from targets(figures, kind, sets)


def nll_table(figures: Figures, sets: Sequence[str]) -> Iterator[str]:
    """NLL of standardised targets, ours and each peer's."""
    methods = ("accord", *RIVALS, "marginal")
    yield f"| NLL, targets in σ | {' | '.join(methods)} | best peer | accord − best |"
    yield "|---" * (len(methods) + 3) + "|"
    for dataset in sets:
        cells = [
            shown(figures.mean(dataset, m, "nll"), figures.error(dataset, m, "nll"))
            for m in methods
        ]
        gap = figures.gap(dataset, "nll")
        best = figures.best_peer(dataset, "nll") if gap is None else gap.peer
        yield f"| {dataset} | {' | '.join(cells)} | {best} | {'–' if gap is None else gap} |"


def interval_table(figures: Figures, sets: Sequence[str]) -> Iterator[str]:
    """Points, intervals, the worst row and the time."""
    yield (
        "| set | RMSE/σ | best peer | 90 %: covered, width | 95 % | quantiles 90 % | narrowest "
        "peer that covers 85 % | CRPS/σ | largest loss | rows below floor | fit, s |"
    )
    yield "|---" * 11 + "|"
    for dataset in sets:
        rival = figures.best_peer(dataset, "rmse")
        narrowest = narrowest_peer(figures, dataset, 0.85)
        cells = (
            shown(figures.mean(dataset, "accord", "rmse")),
            f"{shown(figures.mean(dataset, rival, 'rmse'))} {rival}",
            interval(figures, dataset, "accord", 90),
            interval(figures, dataset, "accord", 95),
            interval(figures, dataset, "quantiles", 90),
            "–"
            if narrowest is None
            else f"{interval(figures, dataset, narrowest, 90)} {narrowest}",
            shown(figures.mean(dataset, "accord", "crps")),
            shown(max(figures.values(dataset, "accord", "largest_loss").values(), default=np.nan)),
            f"{sum(figures.values(dataset, 'accord', 'below_floor').values()):.0f}",
            shown(figures.mean(dataset, "accord", "fit_seconds"), digits=1),
        )
        yield f"| {dataset} | {' | '.join(cells)} |"


def narrowest_peer(figures: Figures, dataset: str, coverage: float) -> str | None:
    """Of the peers whose 90 % intervals cover at least so much, the one with the least width."""
    peers = (*RIVALS, "quantiles")
    covering = [p for p in peers if figures.mean(dataset, p, "coverage_90") >= coverage]
    return min(covering, key=lambda p: figures.mean(dataset, p, "width_90"), default=None)


def targets(figures: Figures, kind: str, sets: Sequence[str]) -> Iterator[str]:
    """How many sets reach what is aimed at; only sets that have both ours and a peer's figures."""
    gaps = {dataset: figures.gap(dataset, "nll") for dataset in sets}
    known = {dataset: gap for dataset, gap in gaps.items() if gap is not None}
    if not known:
        return
    yield counted("below all peers in mean NLL", {d: g.mean < 0 for d, g in known.items()})
    yield counted("at most 0.1 above the best", {d: g.mean <= 0.1 for d, g in known.items()})
    below_marginal = {
        d: figures.mean(d, "accord", "nll") <= figures.mean(d, "marginal", "nll") for d in known
    }
    yield counted("not above the target's own distribution", below_marginal)
    floor = {d: not any(figures.values(d, "accord", "below_floor").values()) for d in known}
    yield counted("no row below the floor", floor)
    checks = standard_targets if kind == "standard" else shift_targets
    yield from checks(figures, known)


def standard_targets(figures: Figures, known: dict[str, Gap]) -> Iterator[str]:
    """On random rows: published figures, level with the best, intervals right and narrow."""

    def mean(dataset: str, figure: str, method: str = "accord") -> float:
        return figures.mean(dataset, method, figure)

    published = {d: mean(d, "nll_own_units") <= n for d, n in PUBLISHED_NLL.items() if d in known}
    yield counted("at or below the published NLL", published)
    level = {
        d: gap.mean <= -0.03 or gap.mean <= np.nan_to_num(gap.error)
        for d, gap in known.items()
        if d not in PUBLISHED_NLL
    }
    yield counted("development sets: 0.03 below the best peer, or level within one s.e.", level)
    rmse = {
        d: mean(d, "rmse") <= 1.03 * mean(d, "rmse", figures.best_peer(d, "rmse")) for d in known
    }
    yield counted("RMSE at most 3 % above the best peer's", rmse)
    yield counted("90 % covers 88–93 %", {d: 0.88 <= mean(d, "coverage_90") <= 0.93 for d in known})
    narrow = {d: mean(d, "width_90") < mean(d, "width_90", "quantiles") for d in known}
    yield counted("90 % intervals narrower than conformal quantiles'", narrow)


def shift_targets(figures: Figures, known: dict[str, Gap]) -> Iterator[str]:
    """Away from the data: coverage kept, at no more than half again the width of a rival's."""
    kept, narrow = {}, {}
    for dataset in known:
        coverage = figures.mean(dataset, "accord", "coverage_90")
        kept[dataset] = coverage >= 0.85
        rival = narrowest_peer(figures, dataset, coverage)
        width = np.inf if rival is None else figures.mean(dataset, rival, "width_90")
        narrow[dataset] = (
            kept[dataset] and figures.mean(dataset, "accord", "width_90") <= 1.5 * width
        )
    yield counted("90 % covers at least 85 %", kept)
    yield counted("… at most 1.5 times as wide as the narrowest peer that covers as much", narrow)


def counted(what: str, reached: dict[str, bool]) -> str:
    missed = [dataset for dataset, ok in reached.items() if not ok]
    tail = f" (not {', '.join(missed)})" if missed else ""
    return f"- {what}: {len(reached) - len(missed)} of {len(reached)}{tail}"


def interval(figures: Figures, dataset: str, method: str, nominal: int) -> str:
    covered = figures.mean(dataset, method, f"coverage_{nominal}")
    width = figures.mean(dataset, method, f"width_{nominal}")
    return "–" if np.isnan(covered) else f"{covered:.0%}, {width:.2f}"


def shown(value: float, error: float = np.nan, *, digits: int = 2) -> str:
    if np.isnan(value):
        return "–"
    if abs(value) >= 1e6:
        return f"{value:.0e}"
    return f"{value:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")
