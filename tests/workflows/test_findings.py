"""What a fit finds: columns, leaks, rows with receipts, curves of columns, levels of coverage."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from accord._wording import json_text, number
from accord.tables import prepare_training, read_table
from accord.workflows import FitResult
from accord.workflows.findings import Leaks, alone_explained, described_columns, find_leaks


def test_levels_agree_with_the_assessment_and_grow(fitted: FitResult) -> None:
    curve, _ = fitted.curves
    assert curve.rows == 150
    at = int(np.flatnonzero(curve.stated == 0.95)[0])
    assert curve.covered[at] == fitted.held_out.covered
    assert curve.width[at] == fitted.held_out.mean_width
    assert curve.without_model[at] == pytest.approx(fitted.use.without_model)
    assert np.all(np.diff(curve.width) > 0)
    assert np.all(np.diff(curve.covered) >= 0)


def test_widths_of_levels_are_those_of_the_distributions(fitted: FitResult) -> None:
    curve, _ = fitted.curves
    parts = fitted.model.engine_.judged_
    ends = np.concatenate([np.asarray(part.dist.interval(0.8)) for part in parts])
    at = int(np.flatnonzero(curve.stated == 0.8)[0])
    assert curve.width[at] == pytest.approx(np.ptp(ends, axis=1).mean())


def test_the_widest_rows_have_their_receipts(fitted: FitResult, houses: pd.DataFrame) -> None:
    widths = [row.judged.width for row in fitted.widest]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx((fitted.held_out.upper - fitted.held_out.lower).max())
    for row in fitted.widest:
        judged = row.judged
        assert judged.observed == houses["price"][judged.row - 1]
        assert judged.noise + judged.disagreement + judged.distance == pytest.approx(1)
        ends = f"{number(judged.lower, 4)} to {number(judged.upper, 4)}"
        assert row.receipt[0].endswith(f"interval {ends}.")
        assert row.receipt[-1].startswith("What would narrow it most")


def test_a_receipt_names_rows_that_its_models_had_seen(fitted: FitResult) -> None:
    model = fitted.model
    part_of = {
        int(number): place
        for place, part in enumerate(model.engine_.judged_)
        for number in model.training_.rows[part.rows]
    }
    for row in fitted.widest:
        line = next(line for line in row.receipt if line.startswith("Nearest training rows"))
        near = [int(number) for number in re.findall(r"\d+", line)]
        assert len(near) == 5
        assert all(part_of[number] != part_of[row.judged.row] for number in near)


def test_rows_show_the_main_columns(fitted: FitResult, houses: pd.DataFrame) -> None:
    assert fitted.main_columns[0] == "area"
    assert len(fitted.rows) == 150
    shown = [float(row.cells[0]) for row in fitted.rows]
    np.testing.assert_allclose(shown, houses["area"])


def test_curves_follow_the_truth(fitted: FitResult) -> None:
    """Prices were made of 2 per unit of area, and 20 more for Ulm."""
    curves = {curve.column: curve for curve in fitted.dependence}
    area = curves["area"]
    assert np.polyfit(area.at, area.mean, 1)[0] == pytest.approx(2, abs=0.15)
    assert np.all(area.lower < area.mean - 2 * area.unknown)
    assert np.all(area.mean + 2 * area.unknown < area.upper)
    town = curves["town"]
    gain = town.mean[town.labels.index("Ulm")] - town.mean[town.labels.index("Bonn")]
    assert gain == pytest.approx(20, abs=12)
    assert curves["sold"].labels[0].startswith("2020-")


def test_columns_that_give_the_target_away_are_found() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    frame = pd.DataFrame(
        {
            "linear": 3 * y + 1,
            "curved": np.exp(y),
            "class": np.digitize(y, np.quantile(y, np.arange(0.1, 1, 0.1))).astype(str),
            "noise": rng.normal(size=300),
            "related": y + rng.normal(size=300),
            "y": y,
        }
    )
    frame["class"] = "c" + frame["class"]
    data = prepare_training(read_table(frame), target="y")
    alone = alone_explained(data, np.arange(len(data.y)) % 5)
    assert Leaks(alone, 0).suspected == ["linear", "curved"]
    assert 0.8 < alone["class"] < 0.95
    assert alone["noise"] < 0.1
    assert alone["related"] == pytest.approx(0.5, abs=0.15)


def test_a_column_that_tells_groups_apart_explains_no_other_group() -> None:
    """A constant per machine predicts rows of the same machine, and is no leak."""
    rng = np.random.default_rng(0)
    machine = np.repeat(np.arange(30), 10)
    frame = pd.DataFrame({"level": rng.normal(size=30)[machine], "noise": rng.normal(size=300)})
    frame["y"] = 5 * rng.normal(size=30)[machine] + 0.1 * rng.normal(size=300)
    data = prepare_training(read_table(frame), target="y")
    assert alone_explained(data, machine % 5)["level"] < 0.3
    assert alone_explained(data, np.arange(300) % 5)["level"] > 0.5
    assert alone_explained(data, np.full(300, -1)) == {}


def test_leaks_are_said_in_sentences() -> None:
    assert Leaks({"a": 0.5}, 0).sentences() == ()
    column, copies = Leaks({"a": 0.99}, 3).sentences()
    assert column.startswith("'a' alone explains 99 % of the target's variance.")
    assert copies.startswith("3 held-out rows repeat a row that the models had seen")
    assert Leaks({}, 1).sentences()[0].startswith("1 held-out row repeats a row")


def test_copies_are_counted_where_models_had_seen_them() -> None:
    """Rows 0 and 20 are copies, and so are 1 and 21: the first two in different parts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=40), "y": rng.normal(size=40)})
    frame.iloc[[20, 21]] = frame.iloc[[0, 1]].to_numpy()
    data = prepare_training(read_table(frame), target="y")
    first = np.r_[0:20, 21]
    parts = [SimpleNamespace(rows=first), SimpleNamespace(rows=np.setdiff1d(range(40), first))]
    model = SimpleNamespace(training_=data, engine_=SimpleNamespace(judged_=parts))
    assert find_leaks(model).copies == 2  # type: ignore[arg-type]


def test_the_document_has_all_that_the_page_shows(fitted: FitResult) -> None:
    document = json.loads(json_text(fitted.to_json()))
    assert len(document["rows"]) == 150
    assert document["rows"][0]["width"] == pytest.approx(fitted.rows[0].width)
    assert document["widest_rows"][0]["receipt"] == list(fitted.widest[0].receipt)
    assert document["by_level"]["held_out"]["stated"][0] == 0.5
    assert document["partial_dependence"][0]["column"] == "area"
    assert document["leaks"]["alone"]["area"] > 0.8
    assert document["in_short"] == "Reliable and useful"
    assert len(document["leaderboard"]) == len(fitted.model.leaderboard_)


def test_every_column_is_described(fitted: FitResult) -> None:
    found = fitted.columns()
    assert [column.name for column in found] == [
        decision.column for decision in fitted.model.training_.decisions
    ]
    for column in found:
        assert column.used == (not column.done.startswith("not used"))


def test_a_column_without_a_use_is_called_so(fitted: FitResult, monkeypatch) -> None:
    """Portfolios leave columns out that held-out rows do not need."""
    sources = np.array(fitted.model.encoder_.feature_names())
    whole = next(name for name in sources if (sources == name).sum() == 1)
    part = next(name for name in sources if (sources == name).sum() > 1)
    idle = [*np.flatnonzero(sources == whole), np.flatnonzero(sources == part)[0]]
    monkeypatch.setattr(fitted.model.engine_, "left_out_", np.array(idle))
    described = {one.name: one for one in described_columns(fitted.model, fitted.leaks)}
    assert not described[whole].used
    assert described[whole].done == "not used: held-out rows are predicted as well without it"
    assert described[part].used
    assert described[part].done.endswith("features that held-out rows do not need are left out")
