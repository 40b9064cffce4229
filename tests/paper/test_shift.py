"""The shift study: its rows, its methods by hand, what is measured, and how it is judged."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from accord.distributions import Normal
from accord.estimators import RECIPES, BVMRegressor
from accord.paper import sets, study_named
from accord.paper.claims import JudgedClaim
from accord.paper.page import group_sentences, markdown_page
from accord.paper.reproduction import Reproduction, StudyResult
from accord.paper.results import Results
from accord.paper.sets import Fold
from accord.paper.shift import answers, methods
from accord.paper.shift.answers import (
    FAMILIES,
    RANDOM,
    SETS,
    SHIFTS,
    STOCKS,
    answer,
    auroc,
    retention,
)
from accord.paper.shift.methods import last_layer, posterior_variance, prior_precision
from accord.paper.shift.verdicts import compared
from accord.paper.stacks import Record, cells_of, stacks_of


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """A set of invented rows in the place of every set."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 9, size=(1500, 9)), random.normal(size=(1500, 3))])
    y = X[:, 10] + 0.1 * random.normal(size=1500)
    monkeypatch.setattr(sets, "table", lambda name: (X, y))
    return X, y


class TestFamilies:
    def test_six_and_at_least_forty_splits(self) -> None:
        assert len(SHIFTS) == 6
        assert sum(len(FAMILIES[name]) for name in SHIFTS) + len(answers.MOMENTS) - 1 >= 40
        assert len(SETS) == 17
        for name in SETS:
            assert any(name in FAMILIES[family] for family in ("gap", "tail", "cluster")), name

    @pytest.mark.parametrize("family", FAMILIES)
    def test_rows_are_disjoint_capped_and_the_same_again(
        self, family: str, table: tuple[np.ndarray, np.ndarray]
    ) -> None:
        dataset = FAMILIES[family][0]
        case, again = (answers.case(family, dataset, 0) for _ in range(2))
        np.testing.assert_array_equal(case.X_test, again.X_test)
        seen = {row.tobytes() for row in case.X_train}
        assert not any(row.tobytes() in seen for row in case.X_test)
        assert 0 < len(case.y_test) <= answers.TEST_ROWS
        assert len(case.y_train) <= answers.ROWS

    def test_gap_and_tail_take_the_feature_that_leads(
        self, table: tuple[np.ndarray, np.ndarray]
    ) -> None:
        gap, tail = (answers.case(family, "boston", 0) for family in ("gap", "tail"))
        assert answers.leading_feature(*table) == 10
        assert np.abs(gap.X_test[:, 10]).max() <= np.abs(gap.X_train[:, 10]).min() + 0.2
        assert np.abs(tail.X_test[:, 10]).min() >= np.abs(tail.X_train[:, 10]).max() - 0.2

    def test_a_group_is_unknown_and_no_more_than_a_third(
        self, table: tuple[np.ndarray, np.ndarray]
    ) -> None:
        case = answers.case("group", "boston", 0)
        [column] = answers.GROUP_COLUMNS["boston"]
        [held_out] = np.unique(case.X_test[:, column])
        assert held_out not in case.X_train[:, column]
        assert 3 * len(case.y_train) >= 2 * answers.ROWS

    def test_time_tests_on_what_comes_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        days = np.arange(1000.0)
        monkeypatch.setattr(sets, "table", lambda name: (days[:, None], days))
        for split, moment in enumerate(answers.MOMENTS):
            case = answers.case("time", STOCKS, split)
            assert case.y_train.max() < case.y_test.min() == round(1000 * moment)
            assert len(case.y_test) == 100

    def test_an_unknown_family_is_refused(self, table: tuple[np.ndarray, np.ndarray]) -> None:
        with pytest.raises(ValueError, match="family must be one of random rows, outliers"):
            answers.case("storm", "boston", 0)


class TestLaplace:
    def test_variance_is_that_of_bayesian_linear_regression(self) -> None:
        """By the joint Gaussian of targets and a new mean, conditioned on the targets."""
        random = np.random.default_rng(0)
        features, at = random.normal(size=(12, 3)), random.normal(size=(4, 3))
        noise, precision = random.uniform(0.5, 2.0, 12), 0.7
        prior = np.eye(3) / precision
        of_targets = features @ prior @ features.T + np.diag(noise)
        between = at @ prior @ features.T
        expected = at @ prior @ at.T - between @ np.linalg.solve(of_targets, between.T)
        found = posterior_variance(features, noise, precision, at)
        np.testing.assert_allclose(found, np.diag(expected), rtol=1e-10)

    def test_precision_maximises_the_evidence_of_linear_regression(self) -> None:
        """At the posterior's mean Laplace's evidence is the exact log p(t | λ), to a constant."""
        random = np.random.default_rng(1)
        features, noise = random.normal(size=(60, 4)), np.full(60, 0.25)
        t = features @ random.normal(0.0, 0.5, 4) + 0.5 * random.normal(size=60)

        def exact(precision: float) -> float:
            cov = features @ features.T / precision + np.diag(noise)
            return float(multivariate_normal(np.zeros(60), cov).logpdf(t))

        weights = np.linalg.solve(features.T @ features / 0.25, features.T @ t / 0.25)
        found = prior_precision(features, noise, weights)
        grid = np.geomspace(1e-4, 1e4, 33)
        best = grid[int(np.argmax([exact(value) for value in grid]))]
        assert 0.5 <= found / best <= 2.0, "one step of the grid"

    def test_last_layer_only_widens_and_more_so_away_from_the_data(self) -> None:
        random = np.random.default_rng(2)
        X = random.normal(size=(80, 2))
        y = X[:, 0] + 0.1 * random.normal(size=80)
        settings = {**RECIPES["cosine"], "epochs": 5}
        model = BVMRegressor(**settings, tolerance=0.0, random_state=0).fit(X, y)
        asked = np.array([[0.0, 0.0], [8.0, 8.0]])
        alone, wider = model.predict_dist(asked), last_layer(model, X, asked)
        np.testing.assert_allclose(wider.mean, alone.mean, rtol=1e-6)
        added = np.asarray(wider.variance) - np.asarray(alone.variance)
        assert (added > 0).all()
        assert added[1] > 5 * added[0]


class TestMethods:
    def test_marginal_is_the_targets_own(self) -> None:
        y = np.random.default_rng(0).gamma(2.0, size=2000)
        case = Fold(0, y[:, None], y, np.zeros((3, 1)), np.zeros(3))
        [dist] = methods._marginal(case, 0).values()
        np.testing.assert_allclose(dist.mean, y.mean(), rtol=0.02)
        np.testing.assert_allclose(np.asarray(dist.cdf(1.0)), np.mean(y <= 1.0), atol=0.03)

    def test_one_factor_for_all_networks_follows_the_inner_splits(self) -> None:
        """Errors thrice as large as predicted on outliers ask for 3, unless random rows forbid."""
        random = np.random.default_rng(0)
        calm, wild = random.normal(size=4000), 3 * random.normal(size=4000)
        dists = [Normal(np.zeros(4000), 1.0)] * 2
        bearable, best = methods._inflations(dists, [calm, wild], np.array([False, True]))
        assert best == 3.0
        assert 1.0 < bearable < 1.5

    @pytest.mark.slow
    def test_every_method_answers_with_finite_scores(self) -> None:
        random = np.random.default_rng(0)
        X = random.normal(size=(110, 2))
        y = X[:, 0] + 0.1 * random.normal(size=110)
        case = Fold(0, X[:100], y[:100], X[100:], y[100:])
        found = {
            name: answer(case, dist, seconds=seconds)
            for name, dist, seconds in methods.predictions(case, seed=0)
        }
        assert set(found) == {method.name for method in methods.methods()}
        for name, scored in found.items():
            assert all(np.isfinite(v) for v in scored.measures.values()), name
        assert found[methods.ACCORD].measures["nll"] < found[methods.MARGINAL].measures["nll"]


class TestScores:
    def test_auroc_is_the_share_of_pairs_in_order(self) -> None:
        random = np.random.default_rng(0)
        error, deviation = random.normal(size=50) ** 2, random.normal(size=50) ** 2
        large = np.sort(error)[-10]
        pairs = [
            (deviation[i] > deviation[j])
            for i in range(50)
            for j in range(50)
            if error[i] >= large > error[j]
        ]
        assert auroc(error, deviation) == pytest.approx(np.mean(pairs))

    def test_retention_falls_where_deviations_follow_errors(self) -> None:
        error = np.arange(1.0, 101.0)
        kept = retention(error, error)
        assert kept[-1] == 1.0
        assert kept[0] == pytest.approx(np.mean(error[:10]) / error.mean())
        assert (np.diff(kept) > 0).all()
        np.testing.assert_allclose(retention(error, np.ones(100)), 1.0)


def test_a_set_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCORD_DATA", str(tmp_path))
    assert not sets.is_there("servo")
    assert sets.is_there("boston")
    (tmp_path / "development").mkdir()
    with gzip.open(tmp_path / "development" / "servo.csv.gz", "wt") as file:
        file.write("1,2,3\n4,5,6\n")
    X, y = sets.table("servo")
    assert sets.is_there("servo")
    assert (X.tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])
    assert len(sets.digests("servo")[0]) == 64


Level = Callable[[str, str], float]  # of method and family


def invented(nll: Level, *, coverage: float = 0.9, growth: float = 0.0) -> Results:
    """Records of the whole study whose NLL is as stated, with a little noise over the sets."""
    found = []
    for stack in stacks_of([study_named("shift")], quick=False):
        for *_, cell in cells_of(stack):
            method, family = cell.source.method, cell.source.recipe
            measures = dict.fromkeys(_MEASURES, 1.0) | {"coverage90": coverage, "growth": growth}
            measures["nll"] = nll(method, family) + 1e-3 * (len(cell.dataset) % 5)
            curves = {name: [0.5, 1.0] for name in ("distance", "covered", "width")}
            curves["retention"] = [1.0] * 10
            found.append(Record(cell.source, cell.dataset, cell.split, measures, curves))
    return Results(found)


_MEASURES = (
    *("crps", "interval_score", "coverage50", "coverage95", "width90"),
    *("auroc", "retention", "seconds"),
)


def verdicts(results: Results) -> dict[tuple[str, str], JudgedClaim]:
    found = study_named("shift").beyond(results)
    return {(verdict.claim, verdict.predictive): verdict for verdict in found}


def outcome(results: Results, claim: str, tried: str = methods.ACCORD) -> str:
    found = [v for (c, with_), v in verdicts(results).items() if claim in c and with_ == tried]
    return min(found, key=lambda verdict: len(verdict.claim)).outcome


def ahead(method: str, family: str) -> float:
    return 0.0 if method == methods.ACCORD and family != RANDOM else 1.0


class TestVerdicts:
    @pytest.mark.parametrize(("coverage", "expected"), [(0.85, "holds"), (0.84, "does not hold")])
    def test_coverage(self, coverage: float, expected: str) -> None:
        assert outcome(invented(ahead, coverage=coverage), "cover 85 %") == expected

    def test_never_worse_than_the_marginal_names_the_split(self) -> None:
        def level(method: str, family: str) -> float:
            return 2.0 if (method, family) == (methods.ACCORD, "time") else ahead(method, family)

        assert outcome(invented(ahead), "marginal distribution") == "holds"
        found = verdicts(invented(level))
        [verdict] = [v for (claim, _), v in found.items() if "marginal distribution" in claim]
        assert verdict.outcome == "does not hold"
        assert "time 1 (by 1.00)" in verdict.evidence

    def test_cost_on_random_rows_is_that_of_the_tolerance(self) -> None:
        def dear(method: str, family: str) -> float:
            return 1.05 if method == methods.ACCORD else 1.0

        assert outcome(invented(ahead), "costs no more") == "holds"
        assert outcome(invented(dear), "costs no more") == "does not hold"

    def test_local_against_one_inflation_can_go_either_way(self) -> None:
        def local(sign: float) -> Level:
            return lambda method, family: sign if method == methods.LOCAL else 0.0

        claim = f"below that of: {methods.GLOBAL}"
        assert outcome(invented(local(-1)), claim, methods.LOCAL) == "holds"
        assert outcome(invented(local(1)), claim, methods.LOCAL) == "does not hold"
        assert outcome(invented(local(0)), claim, methods.LOCAL) == "undecided"

    @pytest.mark.parametrize(("growth", "expected"), [(0.05, "holds"), (0.06, "does not hold")])
    def test_controls(self, growth: float, expected: str) -> None:
        for words in ("shifted by 3", "shuffled", "five columns"):
            assert outcome(invented(ahead, growth=growth), words) == expected

    def test_without_records_nothing_is_judged(self) -> None:
        assert {v.outcome for v in verdicts(Results([])).values()} == {"not run"}
        assert study_named("shift").figures(Results([])) == []


def test_sets_are_the_units_of_the_test() -> None:
    """A set with many splits has one vote."""

    def level(method: str, family: str) -> float:
        return -1.0 if method == methods.ACCORD and family == "time" else 0.0

    found = compared(invented(level), methods.ACCORD, methods.DEEP, "nll")
    assert found is not None
    at_hand = sum(sets.is_there(name) for name in answers.SETS)
    assert (found.lower, found.n_sets) == (len(answers.MOMENTS), 1 + at_hand)
    assert found.p_sets > 0.3, "one set of sixteen is no evidence"


def test_the_page_leads_with_the_verdicts_and_says_what_was_frozen() -> None:
    study, results = study_named("shift"), invented(ahead)
    part = StudyResult(study, tuple(study.tables(results)), (), tuple(study.beyond(results)), ())
    run = {"date": "2000-01-01", "protocol": "full", "versions": {"accord": "0"}, "code": "c0de"}
    page = markdown_page(Reproduction((part,), (), (), {"shift": run}))
    assert page.startswith(f"# {study.title}")
    assert "paper's claims" not in page
    assert page.index("| verdict |") < page.index("Frozen before: nothing is tuned")
    assert page.count(study.title) == 1
    assert page.count("\n### ") - 1 == len(part.tables) == 7
    assert "claims hold" in group_sentences([part])[0]


def test_tables_leave_no_blank_and_hold_every_number_once() -> None:
    for table in study_named("shift").tables(invented(ahead)):
        entries = [entry for column in table.columns for entry in column.entries]
        assert entries
        assert all(entry.ours is not None for entry in entries), table.name
        places = [(e.dataset, e.measure, e.source) for e in entries]
        assert len(places) == len(set(places)), table.name


def test_controls_measure_the_growth_of_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose deviation follows its last column sees that column move."""

    class Follower:
        def __init__(self, **settings: object) -> None: ...

        def fit(self, X: np.ndarray, y: np.ndarray) -> "Follower":
            return self

        def predict_dist(self, X: np.ndarray) -> Normal:
            return Normal(np.zeros(len(X)), 10.0 + X[:, -1])

    case = Fold(0, np.zeros((9, 1)), np.zeros(9), np.zeros((400, 1)), np.zeros(400))
    monkeypatch.setattr(answers, "case", lambda *place: case)
    monkeypatch.setattr(answers, "PortfolioRegressor", Follower)
    found = {control: a.measures["growth"] for (_, control), a in answers.controlled("", 0).items()}
    assert found[answers.SHIFTED] == pytest.approx(0.3, abs=0.01)
    assert found[answers.SHUFFLED] == pytest.approx(0.0, abs=1e-9)
    assert abs(found[answers.ADDED]) < 0.02
