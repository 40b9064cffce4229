"""Files larger than memory: networks learn from all rows, but not from those they are judged on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accord import TableRegressor
from accord.portfolio.crossfit import Clock
from accord.portfolio.networks import NetworkModel
from accord.portfolio.recipes import NetworkRecipe
from accord.portfolio.streamed import FoldedStream
from accord.portfolio.units import PortfolioUnits
from accord.tables import TableError, prepare_training, read_table
from accord.tabular import stream

SMALL = NetworkRecipe(
    "small", "for tests", hidden=(16,), bins=4, dropout=0.05, steps=60, seeds=1, largest_batch=32
)
N, SAMPLE = 3_000, 150


def table(n: int = N, seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, a category, a date, groups, and copies of rows; sorted by the target."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.normal(size=n), "b": random.uniform(size=n)})
    frame["kind"] = random.choice(["x", "y", "z"], n)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        random.integers(0, 500, n), unit="D"
    )
    frame["who"] = random.integers(0, 400, n)
    frame["y"] = np.sin(2 * frame["a"]) + (frame["kind"] == "x") + 0.1 * random.normal(size=n)
    frame.loc[random.random(n) < 0.1, "b"] = np.nan
    frame.iloc[n // 2 : n // 2 + n // 10] = frame.iloc[: n // 10].to_numpy()
    return frame.sort_values("y", ignore_index=True)


@pytest.fixture
def one_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [SMALL])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table().to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def fitted(source: Path, **options: Any) -> TableRegressor:
    fit = {name: options.pop(name) for name in ("checkpoint", "progress") if name in options}
    settings = {"max_rows": SAMPLE, "random_state": 0, **options}
    return TableRegressor(**settings).fit(source, "y", **fit)


def bits(model: TableRegressor) -> np.ndarray:
    member = next(m for m in model.engine_.members_ if m.name.endswith("rows"))
    return np.concatenate([block.ravel() for block in member.model.parameters_])


@pytest.mark.usefixtures("one_recipe")
def test_the_networks_of_the_blend_have_seen_all_rows(file: Path) -> None:
    model = fitted(file)
    assert model.leaderboard_["name"].tolist() == ["small, all rows", "small"]
    assert (
        f"Networks were trained on all 3,000 rows; chosen and judged on a sample of {SAMPLE}."
        in model.notes_
    )
    assert not any("a random sample of" in note for note in model.notes_)
    assert (model.card_.n_trained, model.card_.n_rows) == (N, SAMPLE)
    assert "3,000 rows, judged on a sample of 150" in model.card_.facts()["state"]
    assert len(model.held_out_.y) == SAMPLE
    # a row of the rest counts as seen in training
    assert model.seen_in_training(*rows_of(model, file)) > 0.9


def rows_of(model: TableRegressor, file: Path) -> tuple[pd.DataFrame, np.ndarray]:
    frame = pd.read_parquet(file)
    return model._conformed(frame).X, frame["y"].to_numpy()


@pytest.mark.usefixtures("one_recipe")
@pytest.mark.parametrize("why", ["no passes", "all rows are there", "a frame"])
def test_nothing_is_streamed_without_need(
    file: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(stream.ShuffledRows, "write", refuse)
    if why == "a frame":
        model = fitted(pd.read_parquet(file).head(SAMPLE))
    else:
        model = fitted(file, **({"passes": 0} if why == "no passes" else {"max_rows": N}))
    assert model.leaderboard_["name"].tolist() == ["small"]
    assert any("a random sample of" in note for note in model.notes_) == (why == "no passes")
    assert model.card_.n_trained == model.card_.n_rows


Seen = list[tuple[np.ndarray, np.ndarray]]


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> tuple[Seen, list[PortfolioUnits]]:
    """What each chunk showed to whom, and the units of the fit with their table and folds."""
    seen: Seen = []
    units: list[PortfolioUnits] = []
    chunk, made = FoldedStream.chunk, PortfolioUnits.__init__

    def spy(self: FoldedStream, number: int) -> Any:
        found = chunk(self, number)
        seen.append((found[0].x, found[1]))
        return found

    def remember(self: PortfolioUnits, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        units.append(self)

    monkeypatch.setattr(FoldedStream, "chunk", spy)
    monkeypatch.setattr(PortfolioUnits, "__init__", remember)
    return seen, units


def values(x: np.ndarray) -> np.ndarray:
    """The first feature, which is a number that hardly two rows share, as it is on disk."""
    return x[:, 0].astype(np.float32)


@pytest.mark.usefixtures("one_recipe")
@pytest.mark.parametrize("options", [{}, {"group": "who"}, {"time": "day"}], ids=str)
def test_no_network_sees_the_rows_it_is_judged_on_nor_their_like(
    file: Path, options: dict[str, str], spied: tuple[Seen, list[PortfolioUnits]]
) -> None:
    model = fitted(file, ignore=() if options.get("group") else ("who",), **options)
    seen, (units,) = spied
    frame = pd.read_parquet(file)
    everything = model.features(frame)
    x, shown = np.concatenate([x for x, _ in seen]), np.concatenate([s for _, s in seen], axis=1)
    assert set(values(x)) == set(values(everything))  # all rows take part
    for fold, part in enumerate(units.parts):
        fold_rows = np.setdiff1d(np.arange(len(units.table)), part.train)
        held_out = model.training_.rows[fold_rows] - 1
        if "group" in options:
            kept = frame["who"].isin(frame["who"].iloc[held_out])
        elif "time" in options:
            days = frame["day"].iloc[held_out]
            kept = frame["day"].between(days.min(), days.max())
        else:
            kept = pd.Series(np.isin(values(everything), values(everything[held_out])))
        secret = set(values(everything[kept.to_numpy()]))
        learnt_from = set(values(x[shown[fold]]))
        assert secret
        assert learnt_from.isdisjoint(secret)
        assert len(learnt_from) > len(set(values(units.table.x[part.train])))


@pytest.mark.usefixtures("one_recipe")
def test_rows_that_are_alike_since_values_are_few_are_told_apart_by_number(
    tmp_path: Path, spied: tuple[Seen, list[PortfolioUnits]]
) -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.integers(0, 3, N), "y": random.integers(0, 3, N)})
    frame.to_parquet(tmp_path / "t.parquet")
    fitted(tmp_path / "t.parquet", category=["a"])
    seen, _ = spied
    hidden = sum(int((~shown).sum()) for _, shown in seen)
    turns = sum(shown.shape[1] for _, shown in seen) / N
    assert hidden == turns * SAMPLE  # each row of the sample from one fold, and no other row


@pytest.mark.usefixtures("one_recipe")
def test_the_same_bits_whatever_the_file(file: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(file)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "s.parquet", row_group_size=97)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        own = frame.iloc[part * 1_000 : (part + 1) * 1_000]
        own.to_parquet(tmp_path / "parts" / f"{part}.parquet")
    whole = bits(fitted(file))
    for name in ("t.csv", "s.parquet", "parts"):
        np.testing.assert_array_equal(bits(fitted(tmp_path / name)), whole, err_msg=name)
    assert not np.array_equal(bits(fitted(file, random_state=1)), whole)


@pytest.mark.usefixtures("one_recipe")
def test_all_cells_go_through_the_encoder_of_the_sample(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[np.ndarray, Any]] = []

    def listen(self: stream.ShuffledRows, blocks: Any, *, seed: int) -> None:
        written.extend(blocks)
        write(self, written, seed=seed)

    write = stream.ShuffledRows.write
    monkeypatch.setattr(stream.ShuffledRows, "write", listen)
    frame = pd.read_parquet(file)
    frame.loc[10:20, "y"] = np.nan
    frame.loc[30, "kind"] = "never seen"
    frame.to_parquet(file)
    model = fitted(file)
    numbers = np.concatenate([numbers for numbers, _ in written])
    records = np.concatenate([records for _, records in written])
    known = np.flatnonzero(frame["y"].notna())
    np.testing.assert_array_equal(numbers, known + 1)
    np.testing.assert_array_equal(records["y"], frame["y"].to_numpy()[known])
    wanted = model.features(frame.iloc[known])
    np.testing.assert_array_equal(records["x"], wanted.astype(np.float32))
    assert f"on all {len(known):,} rows" in " ".join(model.notes_)


@pytest.mark.usefixtures("one_recipe")
def test_weights_tolerances_and_bounds_are_those_of_each_row(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    frame = table()[["a", "b", "y"]]
    frame["weight"], frame["eps"] = random.uniform(1, 2, N), random.uniform(0, 0.1, N)
    frame["low"] = np.where(random.random(N) < 0.2, frame["y"] - 1, np.nan)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    roles = {"target": "y", "weight": "weight", "tolerance": "eps", "lower": "low"}
    sample = sampled_table(path, roles)
    records = stream._Recorder(sample)
    with stream.read_again(sample.table, columns=records.columns) as batches:
        found = np.concatenate([records(batch)[1] for batch in batches])
    censored = frame["low"].notna().to_numpy()
    np.testing.assert_array_equal(found["weight"], frame["weight"])
    np.testing.assert_array_equal(found["tolerance"], frame["eps"])
    np.testing.assert_array_equal(found["lower"], frame["low"].fillna(frame["y"]))
    np.testing.assert_array_equal(found["upper"], np.where(censored, np.inf, frame["y"]))
    model = TableRegressor(max_rows=SAMPLE, random_state=0)
    model.fit(path, "y", sample_weight="weight", y_tolerance="eps", y_lower="low")
    assert model.leaderboard_["name"].tolist()[0] == "small, all rows"


def sampled_table(path: Path, roles: dict[str, str]) -> stream.SampledTable:
    sample = read_table(path, max_rows=SAMPLE)
    data = prepare_training(sample, **roles)
    return stream.SampledTable(sample, data, roles, data.tolerance)


@pytest.mark.usefixtures("one_recipe")
def test_a_cell_that_the_sample_does_not_explain_is_named(tmp_path: Path) -> None:
    frame = table()[["a", "b", "y"]].astype(object)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    free = sorted(set(range(1, N + 1)) - set(read_table(path, max_rows=SAMPLE).numbers))[1_000]
    for column, cell in (("a", "1 or 2"), ("y", "unknown")):
        bad = frame.copy()
        bad.loc[free - 1, column] = cell
        bad.to_csv(path, index=False)
        with pytest.raises(TableError, match=rf"'{column}'.* row {free:,}.*--passes 0"):
            fitted(path)
        fitted(path, passes=0)


@pytest.mark.usefixtures("one_recipe")
def test_a_word_that_the_sample_does_not_have_is_a_gap(tmp_path: Path) -> None:
    frame = table()[["a", "b", "y"]].astype(object)
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    free = sorted(set(range(1, N + 1)) - set(read_table(path, max_rows=SAMPLE).numbers))[1_000]
    frame.loc[free - 1, "a"] = "broken"
    frame.to_csv(path, index=False)
    note = f"1 value in 'a' is no number ('broken' in row {free:,}): taken as missing."
    assert note in fitted(path).notes_


@pytest.mark.usefixtures("one_recipe")
def test_without_room_on_the_disk_the_sample_is_used(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accord.tabular.stream._SPARE_BYTES", 1 << 60)
    model = fitted(file)
    assert model.leaderboard_["name"].tolist() == ["small"]
    assert any("no room" in note for note in model.notes_)
    assert any("a random sample of" in note for note in model.notes_)


@pytest.mark.usefixtures("one_recipe")
def test_files_are_gone_when_all_is_done(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[Path] = []
    part = stream.ShuffledRows.part

    def spy(self: stream.ShuffledRows, number: int) -> Any:
        places.append(self.folder)
        return part(self, number)

    monkeypatch.setattr(stream.ShuffledRows, "part", spy)
    fitted(file)
    fitted(file, checkpoint=file.parent / "kept")
    assert file.parent / "kept" in {place.parent for place in places}
    assert not any(place.exists() for place in places)
    assert not (file.parent / "kept").exists()


# --- how much is learnt ------------------------------------------------------------------------


def wave(n: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.uniform(-1, 1, (n, 2)), columns=["a", "b"])
    frame["y"] = np.sin(7 * frame["a"] * frame["b"]) + 0.1 * random.normal(size=n)
    return frame


def test_more_rows_are_learnt_from_as_well_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(SMALL, hidden=(64, 64), bins=8, dropout=0.0, steps=1_500, largest_batch=64)
    monkeypatch.setattr("accord.portfolio.crossfit.recipes_for", lambda *_, **__: [recipe])
    wave(12_000, 0).to_parquet(tmp_path / "t.parquet")
    new = wave(4_000, 1)

    def nll(**options: Any) -> tuple[float, float]:
        model = fitted(tmp_path / "t.parquet", **options)
        density = np.asarray(model.predict_dist(new).log_prob(new["y"].to_numpy()))
        return -float(density.mean()), float(density.std() / np.sqrt(len(density)))

    (sample, error), (streamed, _), (in_memory, _) = (
        nll(passes=0),
        nll(),
        nll(max_rows=12_000),
    )
    noise = -0.5 - 0.5 * np.log(2 * np.pi) - np.log(0.1)  # minus the entropy of the noise
    assert streamed < sample - 10 * error
    assert abs(streamed - in_memory) < 0.15
    assert -noise - 5 * error < streamed < -noise + 0.25


@pytest.mark.usefixtures("one_recipe")
def test_networks_that_are_not_better_are_not_used(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    further = NetworkModel.further

    def spoilt(self: NetworkModel, recipe: NetworkRecipe, *args: Any, **options: Any) -> Any:
        # what was learnt before is lost at once
        return further(self, replace(recipe, learning_rate=3.0), *args, **options)

    monkeypatch.setattr(NetworkModel, "further", spoilt)
    model = fitted(file)
    board = model.leaderboard_.set_index("name")
    assert board.loc["small, all rows", "nll"] > board.loc["small", "nll"]
    assert board.loc["small, all rows", "weight"] == 0
    assert any("did no better" in note for note in model.notes_)
    assert model.card_.n_trained == SAMPLE


# --- stopped runs, and time --------------------------------------------------------------------

KILLED = """
import os, signal, sys
from importlib import import_module
sys.path.insert(0, sys.argv[1])
from test_large_tables import SMALL, fitted
import accord.portfolio.crossfit, accord.tables, accord.work
from pathlib import Path
accord.portfolio.crossfit.recipes_for = lambda *_, **__: [SMALL]
import_module("accord.training.train")._KEEP_SECONDS = 0.0
owner, name, times = {
    "reading": (accord.tables.ShuffledRows, "_append", 1),
    "training": (accord.work.Checkpoint, "put", int(sys.argv[4])),
}[sys.argv[3]]
before, calls = getattr(owner, name), 0
def counted(*args, **options):
    global calls
    before(*args, **options)
    calls += 1
    if calls == times:
        os.kill(os.getpid(), signal.SIGKILL)
setattr(owner, name, counted)
fitted(Path(sys.argv[2]), checkpoint=Path(sys.argv[2]).parent / "kept")
"""


@pytest.mark.usefixtures("one_recipe")
@pytest.mark.parametrize(("moment", "times"), [("reading", 1), ("training", 3), ("training", 40)])
def test_a_killed_fit_goes_on_to_the_same_bits(
    moment: str, times: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(Path(__file__).parent)
    arguments = [sys.executable, "-c", KILLED, here, str(file), moment, str(times)]
    assert subprocess.run(arguments, env=os.environ).returncode == -signal.SIGKILL
    kept = file.parent / "kept"
    assert kept.exists()
    chunks: list[int] = []
    chunk: Callable[..., Any] = FoldedStream.chunk

    def spy(self: FoldedStream, number: int) -> Any:
        chunks.append(number)
        return chunk(self, number)

    monkeypatch.setattr(FoldedStream, "chunk", spy)
    ended = fitted(file, checkpoint=kept)
    # the first thing that is kept is the recipe on the sample, then a state after each chunk
    assert chunks[0] == (times - 1 if moment == "training" else 0)
    assert not kept.exists()
    np.testing.assert_array_equal(bits(ended), bits(fitted(file)))


@pytest.mark.usefixtures("one_recipe")
def test_time_is_kept_for_all_rows_and_not_exceeded(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fitted(file, time_budget=1e-3)
    assert model.leaderboard_["name"].tolist() == ["small"]
    assert any("There was no time to train on all 3,000 rows" in note for note in model.notes_)
    monkeypatch.setattr(Clock, "affordable", lambda self, works: 0.25)
    model = fitted(file, time_budget=60.0)
    assert model.leaderboard_["name"].tolist() == ["small, more rows", "small"]
    assert "trained on 750 of 3,000 rows, for lack of time" in " ".join(model.notes_)
    assert model.card_.n_trained == 750


@pytest.mark.usefixtures("one_recipe")
def test_progress_goes_up_to_the_end(file: Path) -> None:
    heard: list[tuple[float, str]] = []
    fitted(file, progress=lambda share, what="": heard.append((share, what)))
    shares = [share for share, _ in heard]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert list(dict.fromkeys(what for _, what in heard)) == ["Reading", "Training", "Judging"]
    assert sum(1 for _, what in heard if what == "Training") > 60  # a chunk at a time
