"""Verdicts: they follow the numbers and their spread, and say nothing where there are none."""

import csv
import io
import math

import pytest
from invented import invented

from accord.paper import (
    STUDIES,
    Study,
    calibration,
    discussion,
    expansion,
    table1,
    table2,
    table3,
    toy,
)
from accord.paper.claims import (
    JudgedClaim,
    Outcome,
    Trial,
    alike,
    decided,
    judged,
    share_between,
    to_csv,
)
from accord.paper.results import MeanOverSplits, Results
from accord.paper.stacks import Cell
from accord.paper.study import AS_PRINTED, Source, published, published_datasets


def found(study: Study, results: Results, words: str, predictive: str) -> JudgedClaim:
    verdicts = [*study.claims(results), *study.beyond(results)]
    [one] = [v for v in verdicts if words in v.claim and v.predictive == predictive]
    return one


class TestDecided:
    def test_the_interval_decides(self) -> None:
        """t quantile for 19 degrees of freedom at 97.5 %: 2.093."""
        assert decided(MeanOverSplits(-2.10, 1.0, 20), below=0) == "holds"
        assert decided(MeanOverSplits(-2.08, 1.0, 20), below=0) == "undecided"
        assert decided(MeanOverSplits(2.10, 1.0, 20), below=0) == "does not hold"

    def test_few_splits_decide_less(self) -> None:
        assert decided(MeanOverSplits(-2.5, 1.0, 20), below=0) == "holds"
        assert decided(MeanOverSplits(-2.5, 1.0, 3), below=0) == "undecided"
        assert decided(MeanOverSplits(-2.5, math.nan, 1), below=0) == "undecided"

    def test_no_difference_is_no_win(self) -> None:
        assert decided(MeanOverSplits(0.0, 0.0, 20), below=0) == "does not hold"

    def test_both_bounds(self) -> None:
        assert decided(MeanOverSplits(1.0, 0.01, 20), above=0.8, below=1.25) == "holds"
        assert decided(MeanOverSplits(0.5, 0.01, 20), above=0.8, below=1.25) == "does not hold"
        assert decided(None, below=0) == "not run"


def trials(won: int, lost: int, undecided: int, absent: int) -> list[Trial]:
    outcomes: list[Outcome] = ["holds"] * won
    outcomes += ["does not hold"] * lost + ["undecided"] * undecided + ["not run"] * absent
    return [Trial(d, o, "x") for d, o in zip(published_datasets("table1"), outcomes, strict=True)]


@pytest.mark.parametrize(
    ("counts", "needed", "outcome"),
    [
        ((9, 0, 0, 0), None, "holds"),
        ((8, 1, 0, 0), None, "does not hold"),
        ((8, 0, 1, 0), None, "undecided"),
        ((8, 0, 0, 1), None, "undecided"),
        ((4, 5, 0, 0), 4, "holds"),
        ((3, 2, 4, 0), 4, "undecided"),
        ((3, 2, 0, 4), 4, "undecided"),
        ((1, 6, 1, 1), 4, "does not hold"),
        ((0, 0, 0, 9), 4, "not run"),
    ],
)
def test_datasets_are_joined(
    counts: tuple[int, int, int, int], needed: int | None, outcome: str
) -> None:
    assert judged("Table 1", "a claim", "x", trials(*counts), needed=needed).outcome == outcome


def outlier_nll(cell: Cell) -> float:
    """Smoothed beats Deep Ensembles everywhere, the plain model everywhere but on yacht."""
    if cell.source == table3.bvm(AS_PRINTED) and cell.dataset == "yacht":
        return 5.0
    return {"Deep Ensembles": 2.0, "BVM": 1.0}.get(cell.source.method, 3.0)


class TestOutliers:
    def test_grey_rows(self) -> None:
        results = invented(outlier_nll)
        assert found(table3.STUDY, results, "grey rows", "smoothed").outcome == "holds"
        lost = found(table3.STUDY, results, "grey rows", "as printed")
        assert lost.outcome == "does not hold"
        numbers = "5.00 ± 0.00 against 2.00 ± 0.00, difference 3.00 ± 0.00"
        assert lost.evidence == f"5 of 6; not Yacht ({numbers})"

    def test_white_rows(self) -> None:
        verdict = found(table3.STUDY, invented(outlier_nll), "white rows", "smoothed")
        assert verdict.outcome == "does not hold"
        assert verdict.evidence.startswith("0 of 3")

    def test_noise_leaves_it_undecided(self) -> None:
        def nll(cell: Cell) -> float:
            noise = (-1) ** (cell.split // 2) if cell.source.method == "BVM" else 0.0
            return outlier_nll(cell) + 5 * noise

        assert found(table3.STUDY, invented(nll), "grey rows", "smoothed").outcome == "undecided"

    def test_sets_that_were_not_run_are_named(self) -> None:
        records = invented(outlier_nll).records
        results = Results(record for record in records if record.dataset != "wine")
        verdict = found(table3.STUDY, results, "grey rows", "smoothed")
        assert verdict.outcome == "undecided"
        assert verdict.evidence == "5 of 6; not run: Wine"


class TestStocks:
    def test_lowest_nll_needs_both_rivals_beaten(self) -> None:
        def nll(cell: Cell) -> float:
            order = {"Deep Ensembles": 5.2, table2.SMALL: 5.1, table2.LARGE: 5.0}
            bad = cell.source.method == table2.LARGE and cell.source.predictive == "as printed"
            return 11.9 if bad else order.get(cell.source.method, 9.0)

        results = invented(nll)
        assert found(table2.STUDY, results, "lowest NLL", "smoothed").outcome == "holds"
        assert found(table2.STUDY, results, "lowest NLL", "as printed").outcome == "does not hold"
        inside = found(table2.STUDY, results, "all test points", "as printed")
        assert inside.outcome == "does not hold"
        assert inside.evidence == "90 ± 0 % of the test points inside"

    def test_equal_widths_almost_overlap(self) -> None:
        verdict = found(table2.STUDY, invented(), "almost overlaps", "smoothed")
        assert (verdict.outcome, verdict.evidence) == ("holds", "ratio of widths 1.00 ± 0.00")

    def test_the_other_heads_are_not_the_papers(self) -> None:
        assert {v.predictive for v in table2.STUDY.claims(invented())} == {"as printed", "smoothed"}
        beyond = {v.predictive for v in table2.STUDY.beyond(invented())}
        assert beyond == {"as printed, identity mean", "smoothed, identity mean"}


class TestTrials:
    def test_a_ratio_has_its_error(self) -> None:
        """Ratios of 1 and 1.21: a mean of 1.1 (geometric), ± 1.1 · log(1.21)/2."""
        trial = alike("google", [1.0, 1.21] * 10, "ratio")
        assert trial.outcome == "holds"
        assert trial.text == f"ratio 1.10 ± {1.1 * math.log(1.1) / math.sqrt(19):.2f}"
        assert alike("google", [1.4, 1.41] * 10, "ratio").outcome == "does not hold"
        assert alike("google", [0.7, 1.9], "ratio").outcome == "undecided"
        assert alike("google", [], "ratio").outcome == "not run"

    def test_a_share_has_its_error(self) -> None:
        trial = share_between("energy", MeanOverSplits(0.1, 0.012, 20), "inside", above=0.05)
        assert (trial.outcome, trial.text) == ("holds", "10 ± 1 % inside")

    def test_on_one_set_the_splits_that_agree_are_counted(self) -> None:
        """A single disaster hides in the mean what all other splits say."""

        def nll(cell: Cell) -> float:
            disaster = cell.source.method == "MSE Ensemble" and cell.split == 7
            return 1e4 if disaster else 2.0 if cell.source.method == "MSE Ensemble" else 1.0

        verdict = found(toy.STUDY, invented(nll), "spread of an MSE", "smoothed")
        assert verdict.outcome == "undecided"
        assert verdict.evidence.endswith("lower on 20 of 20")

    def test_only_common_splits_are_compared(self) -> None:
        """A method with fewer splits is held against the other's on these."""

        def nll(cell: Cell) -> float:
            late = 5.0 if cell.split >= 10 else 0.0
            return 1.0 + (late if cell.source.method == "Deep Ensembles" else 0.5)

        results = invented(nll)
        verdict = found(discussion.STUDY, results, "on outliers below", "robust (ours)")
        assert verdict.outcome == "does not hold"
        assert "(1.50 ± 0.00 against 1.00 ± 0.00, difference 0.50 ± 0.00)" in verdict.evidence


class TestCalibration:
    def ece(self, cell: Cell) -> float:
        if cell.source.method == "MSE Ensemble":
            return 0.3
        return 0.06 if cell.source == table1.bvm("printed", AS_PRINTED) else 0.03

    def test_as_well_calibrated(self) -> None:
        results = invented(ece=self.ece)
        for measure in ("ECE", "MCE"):
            words = f"than the MSE ensemble ({measure})"
            assert found(calibration.STUDY, results, words, "smoothed").outcome == "holds"
        worse = found(calibration.STUDY, results, "as well calibrated", "as printed")
        assert worse.outcome == "does not hold"
        assert worse.evidence == "mean difference 0.030 ± 0.000, 9 sets"
        assert found(calibration.STUDY, results, "as well", "smoothed").outcome == "holds"

    def test_each_stated_share_has_its_verdict(self) -> None:
        """40 % → 10 % is a gap of 0.3, and 60 % → 20 % one of 0.4."""
        results = invented(ece=lambda cell: 0.3)
        energy = found(calibration.STUDY, results, "of the Energy data", "smoothed")
        boston = found(calibration.STUDY, results, "of the Boston data", "smoothed")
        assert (energy.outcome, boston.outcome) == ("holds", "does not hold")
        assert energy.evidence == "10 ± 0 % of the rows inside the 40 % interval"
        assert boston.evidence == "30 ± 0 % of the rows inside the 60 % interval"


class TestDiscussion:
    @staticmethod
    def nll(cell: Cell) -> float:
        """The whole range as ε costs a nat on outliers; a Laplace likelihood gains half of one."""
        if cell.source.method == "BVM ε = 1" and cell.source.recipe == discussion.OUTSIDE:
            return 2.0
        return 0.5 if cell.source.method == "Laplace BVM" else 1.0

    def test_a_very_large_tolerance_is_judged_on_both_kinds_of_rows(self) -> None:
        results = invented(self.nll)
        for predictive in ("as printed", "smoothed"):
            outside = found(
                discussion.STUDY, results, "power (ε = 1 against 0.01, NLL on o", predictive
            )
            inside = found(
                discussion.STUDY, results, "power (ε = 1 against 0.01, NLL on r", predictive
            )
            assert (outside.outcome, inside.outcome) == ("holds", "does not hold")

    def test_laplace(self) -> None:
        verdict = found(discussion.STUDY, invented(self.nll), "Laplace", "smoothed")
        assert verdict.outcome == "holds"
        assert verdict.evidence.startswith("5 of 5")

    def test_layers_are_compared_with_the_networks_that_they_follow(self) -> None:
        def ece(cell: Cell) -> float:
            return 0.01 if "layers" in cell.source.predictive else 0.05

        better = found(discussion.STUDY, invented(ece=ece), "extra layers", "as printed")
        assert better.outcome == "holds"
        worse = found(
            discussion.STUDY, invented(ece=lambda cell: 0.06 - ece(cell)), "extra", "smoothed"
        )
        assert worse.outcome == "does not hold"

    def test_what_a_choice_gains_and_costs(self) -> None:
        def nll(cell: Cell) -> float:
            chosen = cell.source.method == "BVM robust ε"
            inside = cell.source.recipe == discussion.INSIDE
            return (1.3 if inside else 0.4) if chosen else 1.0

        results = invented(nll)
        gains = found(discussion.STUDY, results, "on outliers below", "robust (ours)")
        costs = found(discussion.STUDY, results, "on random rows not above", "robust (ours)")
        assert (gains.outcome, costs.outcome) == ("holds", "does not hold")
        assert "Boston housing (difference 0.30 ± 0.00)" in costs.evidence


class TestInDistribution:
    def test_a_win_is_an_outperformance(self) -> None:
        def nll(cell: Cell) -> float:
            lower = cell.source.method == "BVM" and cell.dataset == "wine"
            return 0.5 if lower else 1.1 if cell.source.method == "BVM" else 1.0

        verdict = found(table1.STUDY, invented(nll), "does not outperform", "as printed")
        assert verdict.outcome == "does not hold"
        numbers = "0.50 ± 0.00 against 1.00 ± 0.00, difference −0.50 ± 0.00"
        assert verdict.evidence == f"8 of 9; not Wine ({numbers})"

    def test_ties_in_noise_are_undecided(self) -> None:
        def nll(cell: Cell) -> float:
            return 1.0 + (0.1 * (-1) ** (cell.split // 2) if cell.source.method == "BVM" else 0.0)

        verdict = found(table1.STUDY, invented(nll), "does not outperform", "as printed")
        assert verdict.outcome == "undecided"

    def test_printed_wins_are_counted_from_the_paper(self) -> None:
        claims = {v.claim for v in table1.STUDY.claims(invented())}
        assert any("PBP" in claim and "printed: 4 of 9" in claim for claim in claims)
        assert any("MC-dropout in NLL" in c and "printed: 2 of 9" in c for c in claims)

    def test_local_within_two_combined_errors_of_the_published(self) -> None:
        def at(offset: float) -> str:
            def nll(cell: Cell) -> float:
                printed = published("table1", cell.dataset, "nll", "Deep Ensembles")
                return 0.0 if printed is None else printed.value + offset * (printed.error or 0)

            verdict = found(table1.STUDY, invented(nll), "published Deep", "local, cosine")
            return verdict.outcome

        assert at(-4.0) == "holds"
        assert at(0.0) == "undecided"
        assert at(9.0) == "does not hold"


def test_expansions_minimiser_is_refused() -> None:
    order, minimiser, *_ = expansion.STUDY.claims(invented())
    assert order.outcome == "holds"
    assert minimiser.outcome == "does not hold"


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_without_records_nothing_is_said(study: Study) -> None:
    verdicts = [*study.claims(Results([])), *study.beyond(Results([]))]
    assert verdicts
    assert {v.outcome for v in verdicts} == {"not run"}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_full_records_leave_nothing_unrun(study: Study) -> None:
    """Every source that a claim names is one that a run answers."""
    verdicts = [*study.claims(invented()), *study.beyond(invented())]
    assert "not run" not in {v.outcome for v in verdicts}
    assert all(v.evidence for v in verdicts)


def test_the_papers_claims_are_judged_on_the_papers_method() -> None:
    """Changing all that is ours changes no verdict on the paper's claims."""

    def is_ours(source: Source) -> bool:
        other = source.recipe in ("cosine", "rate 3e-3", "floor 1e-6", "identity mean")
        return other or source.predictive == "local" or source.method == "BVM eps=0.1"

    def nll(cell: Cell) -> float:
        return 99.0 if is_ours(cell.source) and cell.source.study != "table2" else 1.0

    for study in STUDIES:
        assert list(study.claims(invented(nll))) == list(study.claims(invented()))


def test_csv_holds_both_kinds() -> None:
    results = invented(outlier_nll)
    claims, beyond = list(table3.STUDY.claims(results)), list(table3.STUDY.beyond(results))
    rows = list(csv.DictReader(io.StringIO(to_csv(claims, beyond))))
    assert [row["verdict"] for row in rows] == [v.outcome for v in (*claims, *beyond)]
    assert [row["of"] for row in rows] == ["paper"] * len(claims) + ["accord"] * len(beyond)
