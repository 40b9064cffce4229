"""How much further accord gets than the paper: the aims set for the local tolerance."""

from collections.abc import Callable, Iterable
from math import hypot

from accord.experiments import published
from accord.experiments.results import Results
from accord.experiments.tables import formatted
from accord.experiments.verdicts import Trial, Verdict, judged

__all__ = ["NOTE", "aims_of"]

NOTE = (
    "What accord set out to reach with its local tolerance. Every choice that a run makes, it "
    "makes on training rows. The form of the local tolerance itself was settled with splits of "
    "Boston, Concrete, Energy, Wine and Yacht in view, so that the other four sets test it."
)

# variants with the local tolerance, by the paper's recipe and by our own, and the Deep Ensembles of
# the same recipe
_OUTLIERS = {"local": "plain", "cosine, local": "cosine"}
_RANDOM_ROWS = ("rate 3e-3, local", "cosine, local")


def aims_of(study: str, results: Results) -> list[Verdict]:
    """The aims that a study bears on, judged like the paper's claims."""
    return list(_JUDGES[study](results)) if study in _JUDGES else []


def _outliers(results: Results) -> Iterable[Verdict]:
    sets = published.datasets("table3")
    for variant, deep in _OUTLIERS.items():
        yield judged(
            "Table 3",
            "NLL on outliers below our Deep Ensembles of the same recipe, or level within one "
            "standard error, on all nine",
            variant,
            [_against_deep_ensembles(results, dataset, variant, deep) for dataset in sets],
        )
        yield judged(
            "Table 3",
            "NLL on outliers not worse than the published BVM on all nine",
            variant,
            [_against_published_bvm(results, dataset, variant) for dataset in sets],
        )


def _against_deep_ensembles(results: Results, dataset: str, variant: str, deep: str) -> Trial:
    """On the same splits, so that the error is that of the difference."""
    rival = ("Deep Ensembles", deep)
    gap = results.difference("table3", dataset, ("BVM", variant), rival, "nll")
    if gap is None:
        return Trial(dataset, None, "")
    level = gap.value <= 0 or gap.value <= gap.error
    return Trial(dataset, level, f"{formatted(gap)} above")


def _against_published_bvm(results: Results, dataset: str, variant: str) -> Trial:
    ours = results.estimate("table3", dataset, "BVM", variant, "nll")
    printed = published.figure("table3", dataset, "nll", "BVM")
    if ours is None or printed is None:
        return Trial(dataset, None, "")
    unrounded = printed.value + 0.5 * 10.0**-printed.decimals
    text = f"{formatted(ours)} against {formatted(printed)}"
    return Trial(dataset, ours.value <= unrounded, text)


def _in_distribution(results: Results) -> Iterable[Verdict]:
    for variant in _RANDOM_ROWS:
        yield judged(
            "Table 1",
            "NLL in distribution not worse than the published Deep Ensembles within two standard "
            "errors on all nine",
            variant,
            [_against_published_nll(results, d, variant) for d in published.datasets("table1")],
        )


def _against_published_nll(results: Results, dataset: str, variant: str) -> Trial:
    ours = results.estimate("table1", dataset, "BVM", variant, "nll")
    printed = published.figure("table1", dataset, "nll", "Deep Ensembles")
    if ours is None or printed is None:
        return Trial(dataset, None, "")
    own = ours.error if ours.n > 1 else 0.0
    error = hypot(own, printed.error or 0.0, printed.rounding)
    text = f"{formatted(ours)} against {formatted(printed)}"
    return Trial(dataset, ours.value - printed.value <= 2 * error, text)


def _calibrated(results: Results) -> Iterable[Verdict]:
    for variant in _RANDOM_ROWS:
        yield judged(
            "Appendix A",
            "ECE at most the paper's BVM column on seven of nine",
            variant,
            [
                _against_published_ece(results, d, variant)
                for d in published.datasets("calibration")
            ],
            needed=7,
        )


def _against_published_ece(results: Results, dataset: str, variant: str) -> Trial:
    ours = results.estimate("table1", dataset, "BVM", variant, "ece")
    printed = published.figure("calibration", dataset, "ece", "BVM")
    if ours is None or printed is None:
        return Trial(dataset, None, "")
    text = f"{ours.value:.3f} against {printed.value:.3f}"
    return Trial(dataset, ours.value <= printed.value, text)


_JUDGES: dict[str, Callable[[Results], Iterable[Verdict]]] = {
    "table1": _in_distribution,
    "table3": _outliers,
    "calibration": _calibrated,
}
