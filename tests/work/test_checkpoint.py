"""What is kept of a run: found by the very same question only, whole or not at all."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accord import BVMRegressor, TableRegressor
from accord.portfolio import PortfolioRegressor
from accord.work import Checkpoint, InProcess, carry_out, digest

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(40, 2))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.normal(size=40)


@dataclass(frozen=True)
class Setting:
    rate: float = 0.1
    sizes: tuple[int, ...] = (8, 8)
    name: str | None = None


@pytest.mark.parametrize(
    "other",
    [
        Setting(rate=0.1 + 1e-17 + 1e-16),
        Setting(sizes=(8, 9)),
        Setting(name="None"),
        np.zeros(3),
        np.zeros((3, 1), np.float32),
        {"a": 1},
        {"a": 1.0},
        ["ab", "c"],
        ["a", "bc"],
        None,
        "",
    ],
)
def test_a_digest_tells_values_apart(other: object) -> None:
    values = [Setting(), np.zeros(3, np.float32), np.arange(3.0), ["abc"], {"b": 1}, True]
    assert digest(other) not in {digest(value) for value in values}
    assert digest(other) == digest(replace(other) if isinstance(other, Setting) else other)


def test_a_digest_of_a_view_is_that_of_its_values() -> None:
    table = np.arange(12.0).reshape(3, 4)
    assert digest(table.T) == digest(table.T.copy())
    assert digest(table[:, 1]) == digest(np.array([1.0, 5.0, 9.0]))


def test_what_has_no_digest_is_named() -> None:
    with pytest.raises(TypeError, match="numbers, text and arrays, got a set"):
        digest({1})


def test_a_damaged_file_counts_as_absent(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "kept")
    kept.put("a", {"weights": np.arange(1_000.0)})
    [file] = kept.folder.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:500] + b"\0" * 8 + whole[508:]):
        file.write_bytes(damaged)
        assert kept.get("a", dict) is None
    file.write_bytes(whole)
    found = kept.get("a", dict)
    assert found is not None
    assert np.array_equal(found["weights"], np.arange(1_000.0))
    assert kept.get("a", str) is None


def test_clearing_leaves_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    kept = Checkpoint(tmp_path)
    kept.put("a", 1)
    kept.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_files_of_a_run_are_removed_with_the_rest(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "kept")
    for key in ("a", "b"):  # also those of another question
        kept.place(key).mkdir(parents=True)
        (kept.place(key) / "rows").write_bytes(b"1")
    assert Checkpoint(tmp_path / "kept").place("a") == kept.place("a")
    kept.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_run_goes_on_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    kept = Checkpoint(tmp_path / "file" / "folder")
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        kept.put("a", 1)
    kept.put("b", 2)  # said once
    with pytest.raises(ValueError, match="must be a folder, got the file"):
        Checkpoint(tmp_path / "file")


def test_units_that_were_kept_are_not_done_again(tmp_path: Path) -> None:
    kept, calls = Checkpoint(tmp_path), []

    def halved(number: int) -> float:
        if number % 2:
            raise ValueError(f"{number} is odd")
        calls.append(number)
        return number / 2

    def run() -> list[tuple[int, float | None, bool]]:
        units = carry_out(
            halved,
            [str(number) for number in range(4)],
            lambda number: None if number == 3 else (number,),
            workers=InProcess(),
            checkpoint=kept,
            kind=float,
        )
        return [(done.number, done.value, done.again) for done in units]

    assert run() == [(0, 0.0, False), (1, None, False), (2, 1.0, False)]
    assert run() == [(0, 0.0, True), (2, 1.0, True), (1, None, False)]
    assert calls == [0, 2]
    assert kept.found == 2


class _StoppedError(Exception):
    """Stands for the end of the process."""


def stopped_at(share: float, folder: Path, **settings: object) -> None:
    """A fit that ends when so much of it is done."""

    def progress(done: float, what: str = "") -> None:
        if done >= share:
            raise _StoppedError

    model = PortfolioRegressor(effort="quick", random_state=0).set_params(**settings)
    with pytest.raises(_StoppedError):
        model.fit(X, Y, checkpoint=folder, progress=progress)


def answers(model: PortfolioRegressor) -> np.ndarray:
    intervals = model.predict_interval(1.5 * X, coverage=0.9)
    levels = model.widening_.levels
    return np.concatenate([intervals.ravel(), levels, np.ravel(model.shifted_[0].dist.std)])


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return answers(PortfolioRegressor(effort="quick", random_state=0).fit(X, Y))


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_stopped_fit_goes_on_to_the_same_bits(
    share: float, tmp_path: Path, whole: np.ndarray
) -> None:
    stopped_at(share, tmp_path / "kept")
    done = len(list((tmp_path / "kept").iterdir()))
    kept = Checkpoint(tmp_path / "kept")
    model = PortfolioRegressor(effort="quick", random_state=0).fit(X, Y, checkpoint=kept)
    assert kept.found == done > 0
    assert np.array_equal(answers(model), whole)


def test_a_folder_is_removed_when_all_is_done(tmp_path: Path) -> None:
    model = PortfolioRegressor(effort="quick", time_budget=1e-3, random_state=0)
    model.fit(X, Y, checkpoint=tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_another_table_or_seed_is_another_question(tmp_path: Path) -> None:
    stopped_at(0.3, tmp_path)
    for changed, seed in ((X + 1e-12, 0), (X, 1)):
        kept = Checkpoint(tmp_path)
        model = PortfolioRegressor(effort="quick", time_budget=1e-3, random_state=seed)
        model.fit(changed, Y, checkpoint=kept)
        assert kept.found == 0
    kept = Checkpoint(tmp_path)
    model = PortfolioRegressor(effort="quick", time_budget=1e-3, random_state=0)
    model.fit(X, Y, checkpoint=kept)
    assert kept.found > 0


def test_damaged_units_of_a_fit_are_done_again(tmp_path: Path, whole: np.ndarray) -> None:
    stopped_at(0.75, tmp_path)
    files = sorted(tmp_path.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:-100])
    kept = Checkpoint(tmp_path)
    model = PortfolioRegressor(effort="quick", random_state=0).fit(X, Y, checkpoint=kept)
    assert kept.found == len(files) - 1
    assert np.array_equal(answers(model), whole)


def test_half_a_recipe_is_not_kept(tmp_path: Path) -> None:
    told = []

    def progress(done: float, what: str = "") -> None:
        told.append(done)
        if len(told) == 8:  # three are done, and a network has told of some epochs
            raise KeyboardInterrupt  # as Ctrl-C in the middle of an epoch does

    model = PortfolioRegressor(effort="quick", random_state=0)
    with (
        pytest.warns(RuntimeWarning, match="interrupted after"),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(X, Y, checkpoint=tmp_path / "kept", progress=progress)
    kept = Checkpoint(tmp_path / "kept")
    model.fit(X, Y, checkpoint=kept)
    assert kept.found == 3  # what is done before the first network begins: lines, a process


@pytest.mark.parametrize("how", [{"checkpoint": "kept"}, {"client": object()}])
def test_an_engine_is_one_unit(how: dict[str, Any]) -> None:
    model = TableRegressor(engine=BVMRegressor(epochs=1))
    with pytest.raises(ValueError, match="must be left out beside an engine"):
        model.fit(X, Y, **how)


def test_a_table_goes_on_as_its_portfolio_does(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path)
    models = [
        TableRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(X, Y, checkpoint=kept)
        for _ in range(2)
    ]
    assert kept.found > 0
    one, other = (model.predict(X) for model in models)
    assert np.array_equal(one, other)
