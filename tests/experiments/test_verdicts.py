"""Verdicts: they follow the numbers, and say nothing where there are none."""

import csv
import io

import pytest
from invented import invented

from accord.experiments import published
from accord.experiments.aims import aims_of
from accord.experiments.records import Cell
from accord.experiments.results import Results
from accord.experiments.studies import STUDIES
from accord.experiments.verdicts import Trial, Verdict, judged, to_csv, to_markdown, verdicts_of

SMOOTHED, MODEL, LOCAL = (
    "smoothed by its tolerance",
    "N(μ, σ²), as the paper predicts",
    "local tolerance",
)


def found(verdicts: list[Verdict], words: str, predictive: str) -> Verdict:
    [one] = [v for v in verdicts if words in v.claim and v.predictive.startswith(predictive)]
    return one


def outlier_nll(cell: Cell) -> float:
    """Smoothed beats Deep Ensembles everywhere, the plain model everywhere but on yacht."""
    level = {"Deep Ensembles": 2.0, "BVM": 1.0}.get(cell.method, 3.0)
    if cell.method == "BVM" and cell.variant == "model" and cell.dataset == "yacht":
        return 5.0
    return level


class TestOutliers:
    def test_grey_rows(self) -> None:
        verdicts = verdicts_of("table3", invented(outlier_nll))
        assert found(verdicts, "all grey rows", SMOOTHED).holds is True
        lost = found(verdicts, "all grey rows", MODEL)
        assert lost.holds is False
        assert lost.evidence == "5 of 6; not Yacht (5.00 ± 0.00 against 2.00 ± 0.00)"

    def test_white_rows(self) -> None:
        verdicts = verdicts_of("table3", invented(outlier_nll))
        assert found(verdicts, "white rows", SMOOTHED).holds is False
        assert found(verdicts, "white rows", SMOOTHED).evidence.startswith("0 of 3")


class TestStocks:
    def test_lowest_nll_needs_both_rivals_beaten(self) -> None:
        def nll(cell: Cell) -> float:
            order = {"Deep Ensembles": 5.2, "BVM eps=0.01": 5.1, "BVM eps=0.1": 5.0}
            bad = cell.method == "BVM eps=0.1" and cell.variant == "model"
            return 11.9 if bad else order.get(cell.method, 9.0)

        verdicts = verdicts_of("table2", invented(nll))
        assert found(verdicts, "lowest NLL", SMOOTHED).holds is True
        assert found(verdicts, "lowest NLL", MODEL).holds is False
        assert found(verdicts, "all test points", MODEL).evidence.startswith("90 % inside")


class TestCalibration:
    def test_as_well_calibrated(self) -> None:
        def ece(cell: Cell) -> float:
            if cell.method == "MSE Ensemble":
                return 0.3
            return 0.06 if cell.variant == "printed, model" else 0.03

        verdicts = verdicts_of("calibration", invented(ece=ece))
        assert all(v.holds for v in verdicts if "better calibrated than the MSE" in v.claim)
        worse = found(verdicts, "as well calibrated as NLL", f"{MODEL}; printed")
        assert (worse.holds, worse.evidence) == (False, "0.060 against 0.030, 9 sets")
        assert found(verdicts, "as well calibrated as NLL", f"{SMOOTHED}; printed").holds


def test_ties_with_deep_ensembles_are_no_wins() -> None:
    def nll(cell: Cell) -> float:
        noise = 0.1 * (-1) ** (cell.split // 2)
        lower = cell.method == "BVM" and cell.dataset == "wine"
        return 1.0 + (noise if cell.method == "BVM" else 0.0) - (0.5 if lower else 0.0)

    verdict = found(
        verdicts_of("table1", invented(nll)), "does not outperform", f"{MODEL}; printed"
    )
    assert verdict.holds is False
    assert verdict.evidence.startswith("8 of 9; not Wine (0.50 ± 0.02")


def test_printed_wins_are_counted_from_the_paper() -> None:
    claims = {v.claim for v in verdicts_of("table1", invented())}
    assert any("PBP" in claim and "printed: 4 of 9" in claim for claim in claims)
    assert any("MC-dropout" in claim and "printed: 2 of 9" in claim for claim in claims)


def test_expansions_minimiser_is_refused() -> None:
    order, minimiser = verdicts_of("expansion", invented())
    assert order.holds is True
    assert minimiser.holds is False


@pytest.mark.parametrize("study", [study.name for study in STUDIES])
def test_without_records_nothing_is_said(study: str) -> None:
    verdicts = [*verdicts_of(study, Results([])), *aims_of(study, Results([]))]
    assert verdicts
    assert {v.holds for v in verdicts} == {None}
    assert {v.outcome for v in verdicts} == {"not run"}


def test_sets_that_were_not_run_are_named() -> None:
    everything = invented(outlier_nll)
    results = Results(record for record in everything.records if record.dataset != "wine")
    verdict = found(verdicts_of("table3", results), "all grey rows", SMOOTHED)
    assert verdict.holds is True
    assert verdict.evidence == "5 of 5; not run: Wine"


def test_sets_that_were_not_run_may_decide() -> None:
    def trials(won: int, lost: int, absent: int) -> list[Trial]:
        outcomes = [True] * won + [False] * lost + [None] * absent
        return [
            Trial(d, w, "") for d, w in zip(published.datasets("table1"), outcomes, strict=True)
        ]

    def holds(*counts: int) -> bool | None:
        return judged("Table 1", "a claim", "model", trials(*counts), needed=4).holds

    assert holds(4, 1, 4) is True
    assert holds(3, 2, 4) is None
    assert holds(3, 6, 0) is False
    assert holds(1, 6, 2) is False


class TestAims:
    def test_level_within_one_standard_error_is_enough(self) -> None:
        def nll(cell: Cell) -> float:
            noise = 0.1 * (-1) ** cell.split
            return 0.99 + noise if cell.variant == "local" else 0.98

        below, *_ = aims_of("table3", invented(nll))
        assert below.holds is True

    def test_worse_is_named(self) -> None:
        def nll(cell: Cell) -> float:
            return 9.0 if cell.variant == "local" and cell.dataset == "wine" else -9.0

        below, against_paper, *_ = aims_of("table3", invented(nll))
        assert below.holds is False
        assert "Wine" in below.evidence
        assert "Wine (9.00 ± 0.00 against 1.47)" in against_paper.evidence
        assert "Yacht" not in against_paper.evidence

    def test_in_distribution_within_two_combined_errors(self) -> None:
        def at(offset: float) -> bool | None:
            def nll(cell: Cell) -> float:
                printed = published.figure("table1", cell.dataset, "nll", "Deep Ensembles")
                return 0.0 if printed is None else printed.value + offset * (printed.error or 0)

            aims = aims_of("table1", invented(nll))
            assert len({aim.holds for aim in aims}) == 1, "all variants are given the same numbers"
            return aims[0].holds

        assert at(1.5) is True
        assert at(3.0) is False

    def test_two_sets_may_miss_the_ece(self) -> None:
        def missing(sets: set[str]) -> bool | None:
            def ece(cell: Cell) -> float:
                return 0.4 if cell.dataset in sets else 0.001

            aims = aims_of("calibration", invented(ece=ece))
            assert len({aim.holds for aim in aims}) == 1, "all variants are given the same numbers"
            return aims[0].holds

        assert missing({"boston", "wine"}) is True
        assert missing({"boston", "wine", "yacht"}) is False


def test_written_forms_hold_the_same() -> None:
    verdicts = verdicts_of("table3", invented(outlier_nll))
    rows = list(csv.DictReader(io.StringIO(to_csv(verdicts))))
    assert [row["verdict"] for row in rows] == [v.outcome for v in verdicts]
    assert to_markdown(verdicts).count("\n") == len(verdicts) + 2
