"""How much further accord gets than the paper: the aims set for the local tolerance."""

from collections.abc import Callable, Iterable
from math import hypot

from accord.experiments import published
from accord.experiments.results import Results
from accord.experiments.tables import formatted
from accord.experiments.verdicts import Trial, Verdict, judged

__all__ = ["aims_of"]

_LOCAL = "local"
_TABLE1_LOCAL = ("BVM", "rate 3e-3, local")


def aims_of(study: str, results: Results) -> list[Verdict]:
    """The aims that a study bears on, judged like the paper's claims."""
    return list(_JUDGES[study](results)) if study in _JUDGES else []


def _outliers(results: Results) -> Iterable[Verdict]:
    sets = published.datasets("table3")
    yield judged(
        "Table 3",
        "NLL on outliers below our Deep Ensembles, or level within one standard error, on all nine",
        _LOCAL,
        [_against_deep_ensembles(results, dataset) for dataset in sets],
    )
    yield judged(
        "Table 3",
        "NLL on outliers not worse than the published BVM on all nine",
        _LOCAL,
        [_against_published_bvm(results, dataset) for dataset in sets],
    )


def _against_deep_ensembles(results: Results, dataset: str) -> Trial:
    """On the same splits, so that the error is that of the difference."""
    deep = ("Deep Ensembles", "plain")
    gap = results.difference("table3", dataset, ("BVM", _LOCAL), deep, "nll")
    if gap is None:
        return Trial(dataset, None, "")
    level = gap.value <= 0 or gap.value <= gap.error
    return Trial(dataset, level, f"{formatted(gap)} above")


def _against_published_bvm(results: Results, dataset: str) -> Trial:
    ours = results.estimate("table3", dataset, "BVM", _LOCAL, "nll")
    printed = published.figure("table3", dataset, "nll", "BVM")
    if ours is None or printed is None:
        return Trial(dataset, None, "")
    unrounded = printed.value + 0.5 * 10.0**-printed.decimals
    text = f"{formatted(ours)} against {formatted(printed)}"
    return Trial(dataset, ours.value <= unrounded, text)


def _in_distribution(results: Results) -> Iterable[Verdict]:
    trials = []
    for dataset in published.datasets("table1"):
        ours = results.estimate("table1", dataset, *_TABLE1_LOCAL, "nll")
        printed = published.figure("table1", dataset, "nll", "Deep Ensembles")
        if ours is None or printed is None:
            trials.append(Trial(dataset, None, ""))
            continue
        own = ours.error if ours.n > 1 else 0.0
        error = hypot(own, printed.error or 0.0, printed.rounding)
        text = f"{formatted(ours)} against {formatted(printed)}"
        trials.append(Trial(dataset, ours.value - printed.value <= 2 * error, text))
    yield judged(
        "Table 1",
        "NLL in distribution not worse than the published Deep Ensembles within two standard "
        "errors on all nine",
        _LOCAL,
        trials,
    )


def _calibrated(results: Results) -> Iterable[Verdict]:
    trials = []
    for dataset in published.datasets("calibration"):
        ours = results.estimate("table1", dataset, *_TABLE1_LOCAL, "ece")
        printed = published.figure("calibration", dataset, "ece", "BVM")
        if ours is None or printed is None:
            trials.append(Trial(dataset, None, ""))
            continue
        text = f"{ours.value:.3f} against {printed.value:.3f}"
        trials.append(Trial(dataset, ours.value <= printed.value, text))
    yield judged(
        "Appendix A",
        "ECE at most the paper's BVM column on seven of nine",
        _LOCAL,
        trials,
        needed=7,
    )


_JUDGES: dict[str, Callable[[Results], Iterable[Verdict]]] = {
    "table1": _in_distribution,
    "table3": _outliers,
    "calibration": _calibrated,
}
