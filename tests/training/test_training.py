"""One loop for all: a stack trains as its members would alone, and failures are noticed."""

import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch

from accord.training import (
    AgreementObjective,
    Architecture,
    ByAutograd,
    GaussianLikelihood,
    Heads,
    Settings,
    StackedMLP,
    StoppingRows,
    Task,
    train,
)
from accord.training.loop import Loop
from accord.training.tasks import StackedRows
from accord.training.train import _without_diverged

ARCHITECTURE = Architecture(3, (8,), 2)
OBJECTIVE = GaussianLikelihood(Heads("identity", "softplus"))
SETTINGS = Settings(epochs=4, batch_size=16, learning_rate=1e-2, dtype=torch.float64)


def make_task(n_rows: int = 50, seeds: tuple[int, ...] = (1, 2), shift: float = 0.0) -> Task:
    rng = np.random.default_rng(n_rows)
    x = rng.normal(size=(n_rows, 3))
    t = x[:, :1] + shift + 0.1 * rng.normal(size=(n_rows, 1))
    return Task(torch.tensor(x), {"target": torch.tensor(t)}, seeds)


@pytest.mark.parametrize(
    "words",
    [
        "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory",
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "Storage size calculation overflowed with sizes=[5000000030000000010]",
    ],
)
def test_too_little_memory_is_said(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Loop) -> None:
        raise RuntimeError(words)

    monkeypatch.setattr(Loop, "run", run)
    with pytest.raises(MemoryError, match=r"must fit in memory.*smaller layers \(hidden\)"):
        train([make_task()], ARCHITECTURE, OBJECTIVE, SETTINGS)


def assert_same(one, other, tolerance=1e-12):
    for a, b in zip(one.parameters, other.parameters, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
    np.testing.assert_allclose(one.history, other.history, rtol=0, atol=tolerance)


def test_a_stack_equals_its_members_trained_one_by_one():
    # ragged on purpose: other lengths, other last batches, other numbers of steps
    tasks = [make_task(50), make_task(47, (3,), shift=1.0), make_task(20, (4, 5, 6))]
    together = train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS)
    for task, result in zip(tasks, together, strict=True):
        for member, seed in enumerate(task.seeds):
            (alone,) = train([replace(task, seeds=(seed,))], ARCHITECTURE, OBJECTIVE, SETTINGS)
            for a, b in zip(alone.parameters, result.parameters, strict=True):
                np.testing.assert_allclose(a[0], b[member], rtol=0, atol=1e-12)


def test_tasks_that_are_dealt_take_the_steps_of_the_longest():
    """50 rows in batches of 16 are four steps; 20 rows are then four batches of 5."""
    settings = replace(SETTINGS, dealt=True)
    longest, shorter = make_task(50), make_task(20, (4, 5))
    rows = StackedRows.stacked([longest, shorter], settings)
    (batches,) = rows.batches(0)
    real = (batches.weight > 0).sum((2, 3))
    assert real.tolist() == [[16, 16, 5, 5]] * 3 + [[2, 2, 5, 5]]
    assert batches.weight.sum((2, 3)) == pytest.approx(1.0)
    for member, own in enumerate((longest, longest, shorter, shorter)):
        seen = batches.columns["target"][:, member][batches.weight[:, member] > 0]
        np.testing.assert_array_equal(np.sort(seen), np.sort(own.columns["target"][:, 0]))
    dealt, (alone,) = (
        train([longest, shorter], ARCHITECTURE, OBJECTIVE, settings),
        train([longest], ARCHITECTURE, OBJECTIVE, SETTINGS),
    )
    assert_same(dealt[0], alone)


def test_dropout_has_a_stream_per_member():
    architecture = Architecture(3, (8,), 2, dropout=0.3, input_dropout=True)
    task = make_task(seeds=(1, 2))
    (both,) = train([task], architecture, OBJECTIVE, SETTINGS)
    (second,) = train([replace(task, seeds=(2,))], architecture, OBJECTIVE, SETTINGS)
    np.testing.assert_allclose(both.parameters[0][1], second.parameters[0][0], atol=1e-12)


def test_batches_gathered_ahead_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    architecture = Architecture(3, (8,), 2, dropout=0.3, input_dropout=True)
    (ahead,) = train([make_task()], architecture, OBJECTIVE, SETTINGS)
    monkeypatch.setattr("accord.training.tasks._GATHER_BYTES", 1)  # one step at a time
    (singly,) = train([make_task()], architecture, OBJECTIVE, SETTINGS)
    for one, other in zip(ahead.parameters, singly.parameters, strict=True):
        np.testing.assert_array_equal(one, other)


def test_slices_within_a_byte_budget_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [make_task(seeds=(i,)) for i in range(6)]
    whole = train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS)
    monkeypatch.setattr(import_module("accord.training.train"), "_STACK_BYTES", 30_000)
    cut = train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS)
    for one, other in zip(whole, cut, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_steps_are_those_of_torchs_optimizer(optimizer):
    task = make_task(40, (9,))
    settings = replace(
        SETTINGS, optimizer=optimizer, weight_decay=0.1, epochs=5, batch_size=64, clip_norm=0.5
    )
    (ours,) = train([task], ARCHITECTURE, OBJECTIVE, settings)
    (start,) = train(
        [task], ARCHITECTURE, OBJECTIVE, replace(settings, epochs=1, learning_rate=1e-300)
    )
    parameters = [torch.tensor(p[0]).requires_grad_() for p in start.parameters]
    cls = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[optimizer]
    stepper = cls(parameters, lr=1e-2, weight_decay=0.1)
    w1, w2, b1, b2 = parameters
    for _ in range(5):
        raw = torch.relu(task.x @ w1 + b1) @ w2 + b2
        variance = torch.nn.functional.softplus(raw[:, 1:]) + 1e-6
        loss = torch.nn.functional.gaussian_nll_loss(
            raw[:, :1], task.columns["target"], variance, full=True
        )
        stepper.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        stepper.step()
    for got, want in zip(ours.parameters, parameters, strict=True):
        np.testing.assert_allclose(got[0], want.detach().numpy(), atol=1e-6)


def test_weight_two_is_the_row_twice():
    task = make_task(8, (1,))
    settings = replace(SETTINGS, batch_size=64)
    weight = torch.ones(8, dtype=torch.float64)
    weight[:4] = 2
    twice = torch.cat([torch.arange(8), torch.arange(4)])
    doubled = replace(task, x=task.x[twice], columns={"target": task.columns["target"][twice]})
    (weighted,) = train([replace(task, weight=weight)], ARCHITECTURE, OBJECTIVE, settings)
    (repeated,) = train([doubled], ARCHITECTURE, OBJECTIVE, settings)
    assert_same(weighted, repeated, 1e-9)


def test_a_weight_counts_the_same_in_any_batch():
    """Where one row has all the weight, what is learnt is that row, however rows are batched."""
    task = make_task(32, (1,))
    weight = torch.zeros(32, dtype=torch.float64)
    weight[5] = 1.0
    settings = replace(SETTINGS, epochs=300, batch_size=4)
    (alone,) = train([replace(task, weight=weight)], ARCHITECTURE, OBJECTIVE, settings)
    stack = StackedMLP(ARCHITECTURE, 1, dtype=torch.float64)
    for block, values in zip(stack.blocks, alone.parameters, strict=True):
        block.copy_(torch.tensor(values))
    mean = stack.forward(task.x[None])[0, 5, 0].item()
    assert mean == pytest.approx(task.columns["target"][5].item(), abs=0.05)
    heavy = torch.ones(32, dtype=torch.float64)
    heavy[5] = 1000.0
    loop = Loop([replace(task, weight=heavy)], ARCHITECTURE, OBJECTIVE, settings, None)
    relative = loop.rows.weight[:32, 0]
    assert (relative[5] / relative[0]).item() == pytest.approx(1000)
    assert relative.mean().item() == pytest.approx(1)


def test_held_out_weights_decide_when_to_stop():
    task = make_task(40, (1,))
    weight = torch.zeros(8, dtype=torch.float64)
    weight[3] = 2.0
    held = StoppingRows(task.x[:8], {"target": task.columns["target"][:8]}, weight)
    one = StoppingRows(task.x[3:4], {"target": task.columns["target"][3:4]})
    settings = replace(SETTINGS, patience=2)
    (weighted,), (single,) = (
        train([replace(task, held_out=rows)], ARCHITECTURE, OBJECTIVE, settings)
        for rows in (held, one)
    )
    np.testing.assert_allclose(weighted.held_out_history, single.held_out_history)


def test_a_learnt_scalar_is_not_decayed():
    task = make_task(40, (1,))
    columns = {**task.columns, "tolerance": torch.ones(40, 1, dtype=torch.float64)}
    task = replace(task, columns=columns, extra=(-3.0,))
    objective = AgreementObjective(Heads("identity", "softplus"), learn_tolerance=True)
    settings = replace(SETTINGS, optimizer="adamw", learning_rate=1e-9, weight_decay=1e6)
    (decayed,) = train([task], ARCHITECTURE, objective, settings)
    assert decayed.extra.item() == pytest.approx(-3.0, abs=1e-6)
    (free,) = train([task], ARCHITECTURE, objective, replace(settings, weight_decay=0.0))
    assert np.abs(decayed.parameters[0]).sum() < np.abs(free.parameters[0]).sum()


def test_cosine_schedule_ends_slowly():
    task = make_task(seeds=(1,))
    smooth = replace(SETTINGS, epochs=100, batch_size=64)
    (fixed,) = train([task], ARCHITECTURE, OBJECTIVE, smooth)
    (slowing,) = train([task], ARCHITECTURE, OBJECTIVE, replace(smooth, schedule="cosine"))
    last_steps = [abs(np.diff(r.history[-5:, 0])).max() for r in (fixed, slowing)]
    assert last_steps[1] < 0.1 * last_steps[0]
    np.testing.assert_array_equal(fixed.history[:2], slowing.history[:2])


def test_early_stopping_restores_each_members_best_state():
    task = make_task(40, (1, 2, 3))
    held = make_task(30)
    task = replace(task, held_out=StoppingRows(held.x, held.columns))
    settings = replace(SETTINGS, epochs=60, patience=3, learning_rate=0.05)
    (result,) = train([task], ARCHITECTURE, OBJECTIVE, settings)
    assert len(result.held_out_history) < 60
    for member, best in enumerate(result.n_epochs):
        curve = result.held_out_history[:, member]
        assert curve[best - 1] == curve[: best + 3].min()
        only = replace(task, seeds=task.seeds[member : member + 1], held_out=None)
        fixed = replace(settings, epochs=int(best), patience=None)
        (alone,) = train([only], ARCHITECTURE, OBJECTIVE, fixed)
        np.testing.assert_allclose(alone.parameters[0][0], result.parameters[0][member], atol=1e-12)


def exploding(raw, columns):
    """A loss that overflows for large targets unless the rate is small."""
    return (torch.exp(raw[..., :1] ** 2) - columns["target"]) ** 2


def test_a_diverging_member_is_restarted_and_reported():
    tame, wild = make_task(seeds=(1,)), make_task(seeds=(2,), shift=50.0)
    settings = replace(SETTINGS, learning_rate=30.0, epochs=3)
    objective = ByAutograd(exploding)
    with pytest.warns(RuntimeWarning, match="diverged; starting them again"):
        results = train([tame, wild], ARCHITECTURE, objective, settings)
    assert all(np.isfinite(block).all() for r in results for block in r.parameters)
    assert sum(int(r.restarts.sum()) for r in results) >= 1


def test_a_restart_that_stops_early_is_healthy():
    """The curves of a restart may be shorter than those of the others."""
    task = make_task(40, (1,))
    held = StoppingRows(task.x[:8], {"target": task.columns["target"][:8]})
    task = replace(task, held_out=held)
    settings = replace(SETTINGS, epochs=60, patience=2)
    (healthy,) = train([task], ARCHITECTURE, OBJECTIVE, settings)
    lost = replace(
        healthy,
        parameters=[np.full_like(block, np.nan) for block in healthy.parameters],
        history=np.full((60, 1), np.nan),
        held_out_history=np.full((60, 1), np.nan),
    )
    with pytest.warns(RuntimeWarning, match="diverged") as caught:
        [again] = _without_diverged([task], [lost], ARCHITECTURE, OBJECTIVE, settings)
    assert len(caught) == 1
    assert again.restarts.tolist() == [1]


def hopeless(raw, columns):
    return raw[..., :1] * math.nan


def test_members_that_never_converge_are_an_error():
    with (
        pytest.warns(RuntimeWarning, match="diverged"),
        pytest.raises(ValueError, match="must reach a finite loss"),
    ):
        train([make_task()], ARCHITECTURE, ByAutograd(hopeless), SETTINGS)


def test_ctrl_c_stops_cleanly_and_says_so():
    def press(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    settings = replace(SETTINGS, epochs=50)
    with pytest.warns(RuntimeWarning, match="interrupted after 2 of 50 epochs"):
        (result,) = train([make_task()], ARCHITECTURE, OBJECTIVE, settings, listener=press)
    (two,) = train([make_task()], ARCHITECTURE, OBJECTIVE, replace(settings, epochs=2))
    assert result.interrupted
    assert_same(result, two)


def test_the_listener_hears_every_epoch_of_every_stack():
    heard = []
    tasks = [make_task(20), make_task(60)]
    train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS, listener=lambda p: heard.append(p))
    assert [p.epoch for p in heard] == list(range(1, 9))
    assert {p.n_epochs for p in heard} == {8}


def test_same_seed_same_bits():
    one, two = (train([make_task()], ARCHITECTURE, OBJECTIVE, SETTINGS)[0] for _ in range(2))
    for a, b in zip(one.parameters, two.parameters, strict=True):
        assert np.array_equal(a, b)


def test_tasks_that_share_their_inputs_train_as_they_would_apart() -> None:
    """Folds of one table hold it once, and the networks are the same to the bit."""
    random = np.random.default_rng(3)
    x = torch.tensor(random.normal(size=(60, 3)))
    t = torch.tensor(random.normal(size=(60, 1)))
    folds = [torch.arange(0, 40), torch.arange(20, 60)]
    apart = [Task(x[own], {"target": t[own]}, (1, 2)) for own in folds]
    shared = [Task(x, {"target": t[own]}, (1, 2), rows=own) for own in folds]
    found = [train(tasks, ARCHITECTURE, OBJECTIVE, SETTINGS) for tasks in (apart, shared)]
    for one, other in zip(*found, strict=True):
        for first, second in zip(one.parameters, other.parameters, strict=True):
            np.testing.assert_array_equal(first, second)
