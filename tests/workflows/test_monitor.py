"""A model in use: what to expect, what came true, and a memory that survives."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from accord._files import OptionError
from accord.distributions import Normal
from accord.tabular import Assessment, DistanceCurve, TableRegressor
from accord.workflows import FitResult, History, MonitoredTable, monitor_table


def new_houses(n: int, *, seed: int, shift: float = 0.0, noise: float = 1.0) -> pd.DataFrame:
    """Further houses of the kind that the model was fitted to, larger ones, or noisier ones."""
    rng = np.random.default_rng(seed)
    area, age = rng.uniform(40, 200, n) + shift, rng.uniform(0, 80, n)
    town = rng.choice(["Ulm", "Bonn", "<b>Kiel</b>"], n, p=[0.5, 0.4, 0.1])
    frame = pd.DataFrame({"area": area, "age": age, "town": town})
    frame["sold"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.uniform(0, 745, n), "D")
    frame["<script>alert(1)</script>"] = rng.normal(size=n)
    frame["country"] = "DE"
    wrong = noise * rng.normal(0, 10 + area / 10)
    frame["price"] = 2 * area - age / 2 + 20 * (town == "Ulm") + wrong
    return frame


@pytest.fixture
def model(fitted: FitResult) -> TableRegressor:
    return fitted.model


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


def batch(name: str, *, rows: int = 100, misses: int = 5) -> MonitoredTable:
    return MonitoredTable(
        name, name, "2026-01-01T00:00:00", rows, rows, misses, 0.05, 0.95, 1.0, 1.0
    )


def history(*misses: int, coverage: float = 0.95) -> History:
    found = History("model", coverage)
    for place, number in enumerate(misses):
        found = found.having(batch(str(place), misses=number))
    return found


# --- before targets are known ------------------------------------------------------------------


def test_without_targets_it_says_what_to_expect(model: TableRegressor) -> None:
    rows = new_houses(200, seed=5)
    found = monitor_table(model, rows.drop(columns="price"))
    assert not found.counted
    assert not found.broken
    assert found.verdict.headline.startswith("No target is known yet: expect 9")
    assert found.drift.drifted == []
    errors = np.abs(rows["price"] - model.predict(rows))
    assert found.expected.error == pytest.approx(errors.mean(), rel=0.25)
    assert found.expected.low <= 0.95 <= found.expected.high
    assert found.batch.error is None


def test_another_country_is_noticed(model: TableRegressor) -> None:
    """No training row was elsewhere."""
    found = monitor_table(model, new_houses(100, seed=5).assign(country="FR"))
    assert found.drift.drifted == ["country"]
    assert found.drift.unusual == 1
    assert all(dict(row.peculiar)["country"] == "FR" for row in found.label_first)


def test_larger_houses_are_noticed(model: TableRegressor) -> None:
    rows = new_houses(200, seed=5, shift=150.0).drop(columns="price")
    found, usual = monitor_table(model, rows), monitor_table(model, new_houses(200, seed=5))
    assert "area" in found.drift.drifted
    assert "town" not in found.drift.drifted
    assert found.drift.unusual > 0.3
    assert found.expected.error > 1.5 * usual.expected.error
    assert found.verdict.level == "caution"
    assert found.verdict.headline.endswith("; the data have drifted.")


def test_rows_to_label_first_are_those_that_the_model_knows_least_about(
    model: TableRegressor, tmp_path: Path
) -> None:
    near, far = new_houses(40, seed=1), new_houses(3, seed=2, shift=400.0)
    rows = pd.concat([near, far], ignore_index=True)
    rows.loc[rows.index[-1], "price"] = 1000.0
    rows.loc[rows.index[:-1], "price"] = np.nan
    found = monitor_table(model, rows, label_rows=5)
    assert {row.row for row in found.label_first[:2]} == {41, 42}  # the 43rd has its target
    assert len(found.label_first) == 5
    assert found.label_first[0].peculiar[0][0] == "area"
    parts = model.predict_uncertainty(rows)
    first = found.label_first[0]
    expected = np.hypot(parts["disagreement"], parts["distance"])[first.row - 1]
    assert first.gain == pytest.approx(expected)
    found.write_label_first(tmp_path / "ask.csv")
    written = pd.read_csv(tmp_path / "ask.csv")
    assert written["row"].tolist() == [row.row for row in found.label_first]
    assert written["gain"].is_monotonic_decreasing


def test_a_table_with_all_targets_asks_for_none(model: TableRegressor, tmp_path: Path) -> None:
    found = monitor_table(model, new_houses(20, seed=1))
    found.write_label_first(tmp_path / "ask.csv")
    assert len(pd.read_csv(tmp_path / "ask.csv")) == 0


def test_the_curve_recovers_coverage_and_errors_at_each_distance() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    distance = rng.uniform(0, 2, n)
    far = distance > 1
    y = rng.normal(size=n) * np.where(far, 2.0, 1.0)  # stated deviations are half of the true ones
    found = Assessment.of(Normal(np.zeros(n), 1.0), y, rows=np.arange(n), coverage=0.9)
    curve = DistanceCurve.from_dict(DistanceCurve.of([(found, distance)]).to_dict())
    near = curve.expect(np.full(10, 0.2), np.ones(10))
    beyond = curve.expect(np.full(10, 5.0), np.ones(10))
    assert near.coverage == pytest.approx(0.9, abs=0.02)
    assert near.error == pytest.approx(np.sqrt(2 / np.pi), rel=0.05)
    assert beyond.coverage == pytest.approx(0.589, abs=0.03)  # P(|z| < 1.645 / 2)
    assert beyond.error == pytest.approx(2 * np.sqrt(2 / np.pi), rel=0.05)
    assert near.low < near.coverage < near.high


# --- with targets ------------------------------------------------------------------------------


def test_rows_at_one_distance_have_one_expectation() -> None:
    inside = np.arange(200) % 2 == 0
    y = np.where(inside, 0.0, 9.0)
    found = Assessment.of(Normal(np.zeros(200), 1.0), y, rows=np.arange(200), coverage=0.95)
    curve = DistanceCurve.of([(found[:100], np.zeros(100)), (found[100:], np.zeros(100))])
    expected = curve.expect(np.zeros(10), np.ones(10))
    assert expected.coverage == 0.5
    assert curve.rows.tolist() == [200]


def test_coverage_that_holds_and_coverage_that_is_lost(model: TableRegressor, state: Path) -> None:
    for seed in range(3):
        kept = monitor_table(model, new_houses(100, seed=seed), state=state)
        assert kept.counted
        assert not kept.broken
    assert kept.history.rows == 300
    assert kept.history.evidence < 1
    for seed in range(3, 6):
        lost = monitor_table(model, new_houses(60, seed=seed, noise=4.0), state=state)
    assert lost.broken
    assert lost.verdict.level == "poor"
    assert lost.verdict.headline.startswith("Coverage no longer holds")
    # once broken it stays so: the alarm may have been seen at any time
    after = monitor_table(model, new_houses(500, seed=9, noise=0.1), state=state)
    assert after.broken
    assert after.history.broken_by == lost.history.broken_by


def test_misses_are_those_of_the_stated_intervals(model: TableRegressor) -> None:
    rows = new_houses(150, seed=4, noise=2.0)
    ends = model.predict_interval(rows)
    outside = (rows["price"] < ends["lower"]) | (rows["price"] > ends["upper"])
    found = monitor_table(model, rows)
    assert found.batch.misses == outside.sum() > 10
    assert found.batch.error == pytest.approx(np.abs(rows["price"] - model.predict(rows)).mean())


def test_rows_are_counted_once_whatever_their_order(model: TableRegressor, state: Path) -> None:
    rows = new_houses(50, seed=1)
    monitor_table(model, rows, state=state)
    again = monitor_table(model, rows.iloc[::-1], state=state)
    assert not again.counted
    assert "they are not counted again" in again.warnings[0]
    assert again.history.rows == 50
    other = monitor_table(model, rows.assign(price=rows["price"] + 1), state=state)
    assert other.history.rows == 100


def test_tables_that_overlap_count_their_new_rows(model: TableRegressor, state: Path) -> None:
    """A file that grows from day to day, as exports do."""
    rows = new_houses(90, seed=1)
    monitor_table(model, rows.iloc[:60], state=state)
    found = monitor_table(model, rows, state=state)
    assert (found.batch.rows, found.batch.labelled) == (90, 30)
    assert found.history.rows == 90
    alone = monitor_table(model, rows.iloc[60:])
    assert found.batch.misses == alone.batch.misses
    assert "60 rows were shown before, in other tables: not counted again." in found.warnings
    last = monitor_table(model, rows.iloc[50:70], state=state)
    assert not last.counted
    assert last.history.rows == 90


def test_rows_with_few_values_are_not_taken_for_each_other(
    model: TableRegressor, state: Path
) -> None:
    rows = pd.concat([new_houses(20, seed=1)] * 3)
    monitor_table(model, rows, state=state)
    assert monitor_table(model, rows.iloc[:-1], state=state).history.rows == 119


def test_copies_of_rows_are_no_further_evidence(model: TableRegressor) -> None:
    rows = new_houses(60, seed=3)
    rows.loc[rows.index[:9], "price"] += 1e4  # misses: 15 %
    once, copied = (monitor_table(model, pd.concat([rows] * times)) for times in (1, 5))
    assert once.batch.weight == 1
    assert copied.batch.labelled == 300
    assert copied.batch.weight == pytest.approx(1 / 5, rel=0.05)
    assert copied.history.evidence == pytest.approx(once.history.evidence, rel=0.1)


def test_rows_alike_by_few_values_are_not_taken_for_training_rows() -> None:
    rng = np.random.default_rng(0)

    def table(n: int) -> pd.DataFrame:
        a = rng.integers(0, 3, n)
        return pd.DataFrame(
            {"a": a, "b": rng.integers(0, 2, n), "y": 10 * a + rng.integers(0, 5, n)}
        )

    few = TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(table(200), "y")
    found = monitor_table(few, table(100))
    assert found.counted
    assert found.warnings == ()


def test_two_runs_at_once_are_both_counted(
    model: TableRegressor, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads the state, waits, and writes: without a lock one would be forgotten."""
    write = History.write

    def slowly(self: History, path: Path) -> None:
        time.sleep(0.5)
        write(self, path)

    monkeypatch.setattr(History, "write", slowly)
    tables = [new_houses(40, seed=seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda rows: monitor_table(model, rows, state=state), tables))
    assert len(json.loads(state.read_text())["batches"]) == 2


def test_rows_that_it_was_trained_on_do_not_count(
    model: TableRegressor, houses: pd.DataFrame, state: Path
) -> None:
    found = monitor_table(model, houses, state=state, by_name=True)
    assert not found.counted
    assert found.history.rows == 0
    assert "cannot test it and do not count" in found.warnings[0]


@pytest.mark.parametrize(
    ("misses", "level", "words"),
    [
        ((5, 4, 6, 5), "good", "Coverage holds: 95 % of 400 rows lie in"),
        ((5,), "caution", "No sign that coverage has fallen, but few rows so far: 95 % of 100"),
        ((5, 30), "poor", "Coverage no longer holds: 82.5 % of 200 rows"),
    ],
)
def test_the_three_answers(
    model: TableRegressor, misses: tuple[int, ...], level: str, words: str
) -> None:
    from accord.tabular import Expectation
    from accord.workflows import ColumnDrift, Drift
    from accord.workflows.history import coverage_verdict

    same = Drift((ColumnDrift("x", 0.0, 1.0, False),), None, 0.05, 0.05, 100)
    found = coverage_verdict(
        history(*misses), batch("last"), Expectation(0.95, 0.9, 1.0, 2.0), same
    )
    assert found.level == level
    assert found.headline.startswith(words)


# --- the state ---------------------------------------------------------------------------------


def test_a_state_is_read_as_it_was_written(state: Path) -> None:
    written = history(5, 4)
    written.write(state)
    assert History.read(state, model="model", coverage=0.95) == written
    assert History.read(state.with_name("none"), model="m", coverage=0.9) == History("m", 0.9)


def test_a_saved_model_goes_on_with_its_state(
    model: TableRegressor, model_file: Path, state: Path
) -> None:
    monitor_table(model, new_houses(40, seed=1), state=state)
    assert monitor_table(model_file, new_houses(40, seed=2), state=state).history.rows == 80


def test_the_state_of_another_model_is_refused(model: TableRegressor, state: Path) -> None:
    history(5).write(state)
    before = state.read_bytes()
    with pytest.raises(OptionError, match=r"'state\.json' must belong to this model"):
        monitor_table(model, new_houses(40, seed=1), state=state)
    assert state.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[1]",
        "[" * 200_000,
        '{"kind": "accord monitoring", "version": 1, "batches": [{}]}',
        '{"kind": "accord monitoring", "version": 1, "model": "m", "coverage": 0.9, '
        '"batches": [], "counted": "no numbers"}',
    ],
)
def test_a_file_that_is_no_state_is_refused(
    model: TableRegressor, state: Path, content: str
) -> None:
    state.write_text(content)
    with pytest.raises(OptionError, match="must be a file that monitoring wrote"):
        monitor_table(model, new_houses(40, seed=1), state=state)
    assert state.read_text() == content


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", "many"),
        ("rows", 10**400),
        ("labelled", 1.5),
        ("labelled", 10**9),
        ("misses", -1),
        ("misses", 10**9),
        ("misses", True),
        ("weight", 0),
        ("weight", 1e308),
        ("weight", "x"),
        ("source", ["a"]),
        ("time", "\x1b[31myesterday"),
        ("time", None),
        ("drift", []),
        ("drift", {"area": "far"}),
        ("error", float("inf")),
        ("unusual", "x"),
        ("expected_coverage", []),
        ("expected_error", float("inf")),
    ],
)
def test_a_state_with_a_batch_that_none_could_be_is_refused(
    state: Path, name: str, value: object
) -> None:
    history(5, 4).write(state)
    content = json.loads(state.read_text())
    content["batches"][1][name] = value
    state.write_text(json.dumps(content))
    with pytest.raises(OptionError, match="must be a file that monitoring wrote"):
        History.read(state, model="model", coverage=0.95)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_kill_at_the_worst_moment_leaves_the_old_state(state: Path) -> None:
    history(5).write(state)
    child = os.fork()
    if child == 0:  # the new state is on the disk, and not yet in its place
        Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        history(5, 6).write(state)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    found = History.read(state, model="model", coverage=0.95)
    assert found == history(5)
    found.having(batch("next")).write(state)  # and the next run goes on
    assert len(json.loads(state.read_text())["batches"]) == 2
