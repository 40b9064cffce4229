"""Training on chunks of rows: the same loop, the same answers, and a state to go on from."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from accord.training import (
    Architecture,
    Chunk,
    DivergedError,
    GaussianLikelihood,
    Heads,
    Settings,
    Task,
    Trained,
    train,
    train_on_stream,
)
from accord.training.tasks import StreamedRows

ARCHITECTURE = Architecture(3, (8,), 2)
OBJECTIVE = GaussianLikelihood(Heads("identity", "softplus"))
SETTINGS = Settings(epochs=6, batch_size=64, learning_rate=1e-2, dtype=torch.float64)
TASKS = [Task(torch.empty(0, 3), {}, seeds) for seeds in ((1, 2), (3,))]


def rows(n: int = 50, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 3))
    return torch.tensor(x), torch.tensor(x[:, :1] + 0.1 * random.normal(size=(n, 1)))


def chunk_of(x: torch.Tensor, y: torch.Tensor, seen: np.ndarray | None = None) -> Chunk:
    seen = np.ones((len(TASKS), len(x)), bool) if seen is None else seen
    return Chunk(lambda own: x[own], {"target": y}, torch.ones(len(x)), seen)


def changing(number: int) -> Chunk:
    return chunk_of(*rows(40 + number, seed=number))


def same(one: list[Trained], other: list[Trained]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(
        np.array_equal(a, b)
        for p, q in pairs
        for a, b in zip(p.parameters, q.parameters, strict=True)
    )


def test_a_chunk_in_one_batch_is_training_in_memory() -> None:
    x, y = rows()
    streamed = train_on_stream(TASKS, lambda _: chunk_of(x, y), ARCHITECTURE, OBJECTIVE, SETTINGS)
    tasks = [replace(task, x=x, columns={"target": y}) for task in TASKS]
    in_memory = train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS)
    for one, other in zip(streamed, in_memory, strict=True):
        for a, b in zip(one.parameters, other.parameters, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
        np.testing.assert_allclose(one.history, other.history, rtol=0, atol=1e-10)


def test_members_learn_nothing_from_rows_that_are_kept_from_them() -> None:
    x, y = rows()
    seen = np.ones((2, 50), bool)
    seen[0, ::3] = False
    absurd = y.clone()
    absurd[::3] += 1_000
    settings = replace(SETTINGS, batch_size=16)
    (first, second), (again, misled) = (
        train_on_stream(
            TASKS, lambda _, y=y: chunk_of(x, y, seen), ARCHITECTURE, OBJECTIVE, settings
        )
        for y in (y, absurd)
    )
    assert same([first], [again])
    assert not same([second], [misled])


def test_unseen_rows_leave_the_mean_to_the_others() -> None:
    x, y = rows()
    seen = np.zeros((2, 50), bool)
    seen[:, :20] = True
    with_unseen, without = (
        train_on_stream(TASKS, lambda _, c=c: c, ARCHITECTURE, OBJECTIVE, SETTINGS)
        for c in (chunk_of(x, y, seen), chunk_of(x[:20], y[:20]))
    )
    for one, other in zip(with_unseen, without, strict=True):
        for a, b in zip(one.parameters, other.parameters, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [1, 63, 64, 100, 257])
def test_batches_are_of_about_equal_size_and_hold_each_row_once(n: int) -> None:
    x, y = rows(n)
    source = StreamedRows(lambda _: chunk_of(x, y), TASKS, SETTINGS)
    found = list(source.batches(0))
    weight = torch.cat([batches.weight for batches in found])
    values = torch.cat([batches.x for batches in found])
    assert weight.shape[1] == 3  # members
    real = weight[..., 0] > 0
    assert torch.equal(values[:, 0][real[:, 0]], x)
    sizes = real[:, 0].sum(1)
    assert sizes.sum() == n
    assert sizes.max() - sizes.min() < len(sizes) + 1
    assert sizes.max() <= 1.5 * SETTINGS.batch_size
    torch.testing.assert_close(weight.sum(2), torch.ones_like(weight[:, :, 0]))


def test_steps_that_are_cut_ahead_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = replace(SETTINGS, batch_size=8)
    whole = train_on_stream(TASKS, changing, ARCHITECTURE, OBJECTIVE, settings)
    monkeypatch.setattr("accord.training.tasks._GATHER_BYTES", 1)  # one step at a time
    assert same(whole, train_on_stream(TASKS, changing, ARCHITECTURE, OBJECTIVE, settings))


def test_an_empty_chunk_is_passed_over() -> None:
    x, y = rows()
    full, nothing = chunk_of(x, y), chunk_of(x[:0], y[:0])
    trained = train_on_stream(
        TASKS, lambda n: nothing if n % 2 else full, ARCHITECTURE, OBJECTIVE, SETTINGS
    )
    assert all(np.isfinite(part.parameters[0]).all() for part in trained)


def test_training_goes_on_from_a_state_to_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("accord.training.train"), "_KEEP_SECONDS", 0.0)
    design = Architecture(3, (8,), 2, dropout=0.3)
    settings = replace(SETTINGS, batch_size=16, schedule="cosine", optimizer="adamw")
    states: list[dict[str, Any]] = []
    whole = train_on_stream(TASKS, changing, design, OBJECTIVE, settings, keep=states.append)
    assert len(states) == settings.epochs

    class StoppedError(Exception):
        pass

    for stop in (1, 4):
        kept: list[dict[str, Any]] = []

        def until(number: int, stop: int = stop) -> Chunk:
            if number == stop:
                raise StoppedError
            return changing(number)

        with pytest.raises(StoppedError):
            train_on_stream(TASKS, until, design, OBJECTIVE, settings, keep=kept.append)
        asked: list[int] = []

        def rest(number: int, asked: list[int] = asked) -> Chunk:
            asked.append(number)
            return changing(number)

        ended = train_on_stream(TASKS, rest, design, OBJECTIVE, settings, state=kept[-1])
        assert asked == list(range(stop, settings.epochs))
        assert same(ended, whole)
        np.testing.assert_array_equal(ended[0].history, whole[0].history)


def test_divergence_is_an_error() -> None:
    x, y = rows()
    with pytest.raises(DivergedError, match="diverged on the stream"):
        train_on_stream(TASKS, lambda _: chunk_of(x, y * np.inf), ARCHITECTURE, OBJECTIVE, SETTINGS)
