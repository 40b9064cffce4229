"""How much further accord gets than the paper: the aims set for the local tolerance."""

from collections.abc import Iterable

from accord.datasets import info
from accord.experiments import published
from accord.experiments.results import Results
from accord.experiments.tables import formatted
from accord.experiments.verdicts import Verdict

__all__ = ["aims_of"]

_LOCAL = "local tolerance"
_RECIPE = "rate 3e-3"


def aims_of(study: str, results: Results) -> list[Verdict]:
    """The aims that a study bears on, judged like the paper's claims."""
    judges = {"table1": _in_distribution, "table3": _outliers, "calibration": _calibrated}
    return list(judges[study](results)) if study in judges else []


def _outliers(results: Results) -> Iterable[Verdict]:
    lost, lost_printed, known = [], [], True
    for dataset in published.datasets("table3"):
        ours = results.estimate("table3", dataset, "BVM", "local", "nll")
        gap = results.difference(
            "table3", dataset, ("BVM", "local"), ("Deep Ensembles", "plain"), "nll"
        )
        printed = published.figure("table3", dataset, "nll", "BVM")
        if ours is None or gap is None or printed is None:
            known = False
            continue
        if gap.value > max(gap.error, 0.0):
            lost.append(f"{info(dataset).title} (by {formatted(gap)})")
        if ours.value - printed.value > ours.error:
            lost_printed.append(f"{info(dataset).title} ({formatted(ours)}, {formatted(printed)})")
    yield _aim(
        "Table 3",
        "NLL on outliers below our Deep Ensembles, or level within one standard error, on all nine",
        lost,
        known,
    )
    yield _aim(
        "Table 3",
        "NLL on outliers not worse than the published BVM, within one standard error, on all nine",
        lost_printed,
        known,
    )


def _in_distribution(results: Results) -> Iterable[Verdict]:
    lost, known = [], True
    for dataset in published.datasets("table1"):
        ours = results.estimate("table1", dataset, "BVM", f"{_RECIPE}, local", "nll")
        printed = published.figure("table1", dataset, "nll", "Deep Ensembles")
        if ours is None or printed is None:
            known = False
            continue
        error = (ours.error**2 + (printed.error or 0.0) ** 2 + printed.rounding**2) ** 0.5
        if ours.value - printed.value > 2 * error:
            lost.append(f"{info(dataset).title} ({formatted(ours)}, {formatted(printed)})")
    yield _aim(
        "Table 1",
        "NLL in distribution not worse than the published Deep Ensembles within two standard "
        "errors, on all nine",
        lost,
        known,
    )


def _calibrated(results: Results) -> Iterable[Verdict]:
    lost, known = [], True
    for dataset in published.datasets("calibration"):
        ours = results.estimate("table1", dataset, "BVM", f"{_RECIPE}, local", "ece")
        printed = published.figure("calibration", dataset, "ece", "BVM")
        if ours is None or printed is None:
            known = False
            continue
        if ours.value > printed.value:
            lost.append(f"{info(dataset).title} ({ours.value:.3f}, {printed.value:.3f})")
    yield _aim(
        "Appendix A", "ECE at most the paper's BVM column on at least seven of nine", lost, known, 2
    )


def _aim(where: str, claim: str, lost: list[str], known: bool, allowed: int = 0) -> Verdict:
    evidence = "all nine" if not lost else f"not {', '.join(lost)}"
    holds = len(lost) <= allowed if known else None
    return Verdict(where, claim, _LOCAL, holds, evidence if known else "")
