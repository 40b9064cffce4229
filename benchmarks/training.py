"""What a training step and a prediction cost, as ratios within one run.

    python benchmarks/training.py [--threads N]

Training: 8 features, 50 units, batch 32, N = 1,000; then two layers of 128 units, 50 networks, as
the default model has them. The plain loop is one ``torch.nn.Sequential``
per member with a DataLoader, the same mathematics and torch's own optimiser. With jax installed
(``[bench]``), the same stack is trained there too, jitted and scanned.
"""

import argparse
import importlib.util
import resource
import time
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from accord.losses import BVMLoss
from accord.training import (
    AgreementObjective,
    Architecture,
    GaussianLikelihood,
    Heads,
    MixtureObjective,
    Settings,
    StackedMLP,
    Task,
    raw_outputs,
    train,
)

D, H, B, N = 8, 50, 32, 1000
ARCHITECTURE = Architecture(D, (H,), 2)
EPS = 0.01
STEPS = -(-N // B)
EPOCHS = 10
WIDE_MEMBERS, WIDE_HIDDEN, COMPONENTS = 50, (128, 128), 5


Tick = Callable[..., None]
Subject = Callable[[Tick], object]
"""Something to time, which ticks at the end of each lap; it does the same work every time."""


def quickest(*subjects: Subject, rounds: int = 20) -> list[float]:
    """Seconds of each subject, of every lap its quickest: what else runs here only ever adds.

    The subjects take turns, so that a slow spell of the machine meets all of them.
    """
    for subject in subjects:
        subject(lambda *_: None)
    laps = [[_laps(subject) for subject in subjects] for _ in range(rounds)]
    return [float(np.min(own, axis=0).sum()) for own in zip(*laps, strict=True)]


def _laps(subject: Subject) -> np.ndarray:
    stamps = [time.perf_counter()]
    subject(lambda *_: stamps.append(time.perf_counter()))
    return np.diff(stamps)


def one_lap(work: Callable[[], object]) -> Subject:
    return lambda tick: (work(), tick())


def make_rows() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=generator)
    return x, torch.sigmoid(x[:, :1] + 0.1 * torch.randn(N, 1, generator=generator))


def plain_training() -> Subject:
    """An epoch of one network the usual way."""
    x, t = make_rows()
    network = torch.nn.Sequential(
        torch.nn.Linear(D, H), torch.nn.ReLU(), torch.nn.Linear(H, 2), torch.nn.Sigmoid()
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(x, t), batch_size=B, shuffle=True)
    loss = BVMLoss(EPS)

    def epoch() -> None:
        for rows, target in loader:
            out = network(rows)
            optimizer.zero_grad()
            loss(out[:, 0], target[:, 0], out[:, 1]).backward()
            optimizer.step()

    return one_lap(epoch)


def stacked_training(members: int, objective: object) -> Subject:
    """Some epochs of a whole stack, with everything: initial weights, shuffling, gathering."""
    x, t = make_rows()
    columns = {"target": t, "tolerance": torch.full_like(t, EPS)}
    task = Task(x, columns, tuple(range(members)))
    settings = Settings(epochs=EPOCHS, batch_size=B, learning_rate=3e-3)
    return lambda tick: train([task], ARCHITECTURE, objective, settings, listener=tick)


def wide_training(batch: int, components: int, columns: tuple[str, ...]) -> tuple[Subject, float]:
    """An epoch of 50 wide networks, and how many operations its products take."""
    x, t = make_rows()
    known = {"target": t, "tolerance": torch.full_like(t, EPS)}
    task = Task(x, {name: known[name] for name in columns}, tuple(range(WIDE_MEMBERS)))
    objective = MixtureObjective(components)
    architecture = Architecture(D, WIDE_HIDDEN, objective.n_outputs, "silu")
    settings = Settings(epochs=3, batch_size=batch, optimizer="adamw", learning_rate=3e-3)
    products = [a * b for a, b in pairwise(architecture.sizes)]
    # forward, by the weights, and by the inputs of all layers but the first
    per_row = 2 * (3 * sum(products) - products[0])
    operations = 3 * -(-N // batch) * batch * WIDE_MEMBERS * per_row
    return lambda tick: train([task], architecture, objective, settings, listener=tick), operations


def wide_table() -> None:
    peak = peak_rate()
    print(f"\n{WIDE_MEMBERS} networks of {WIDE_HIDDEN}; of peak: of a large product's rate")
    names = ("batch", "outputs", "NLL ms", "BVM ms", "BVM/NLL", "of peak")
    print(" ".join(f"{name:>9}" for name in names))
    for batch, components in product((128, 256), (1, COMPONENTS)):
        likelihood, _ = wide_training(batch, components, ("target",))
        agreement, operations = wide_training(batch, components, ("target", "tolerance"))
        nll, bvm = quickest(likelihood, agreement, rounds=5)
        print(
            f"{batch:9} {'mixture' if components > 1 else 'one curve':>9} {nll * 1e3:9.0f} "
            f"{bvm * 1e3:9.0f} {bvm / nll:9.2f} {operations / bvm / peak:9.1%}"
        )


def peak_rate() -> float:
    """Operations per second of a large matrix product."""
    a = torch.randn(1024, 1024)
    return 2 * 1024**3 / quickest(one_lap(lambda: a @ a))[0]


def jax_training(members: int) -> Subject:
    """The same epochs of the same stack in JAX, each as one scan; full batches only."""
    import jax
    import jax.numpy as jnp

    x, t = (jnp.asarray(v.numpy()) for v in make_rows())
    stack = StackedMLP(ARCHITECTURE, members)
    stack.initialise(range(members))
    start = [jnp.asarray(block.numpy()) for block in stack.blocks]

    def loss(parameters, x, t):
        w1, w2, b1, b2 = parameters
        raw = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        out = jax.nn.sigmoid(raw)
        mean, sigma = out[..., :1], jnp.sqrt(out[..., 1:] + 1e-6)
        upper, lower = (t + EPS - mean) / sigma, (t - EPS - mean) / sigma
        # the naive difference: cheaper than anything that holds in the tails
        p = jax.scipy.stats.norm.cdf(upper) - jax.scipy.stats.norm.cdf(lower)
        return -jnp.log(p + 1e-30).mean(axis=(1, 2)).sum()

    def step(state, batch):
        parameters, first, second, count = state
        gradients = jax.grad(loss)(parameters, *batch)
        count = count + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
        scale = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        parameters = [
            p - 3e-3 * scale * m / (jnp.sqrt(v) + 1e-8)
            for p, m, v in zip(parameters, first, second, strict=True)
        ]
        return (parameters, first, second, count), None

    @jax.jit
    def epoch(state, key):
        keys = jax.random.split(key, members)
        order = jax.vmap(lambda k: jax.random.permutation(k, N))(keys)[:, : N // B * B]
        order = order.reshape(members, -1, B).transpose(1, 0, 2)
        return jax.lax.scan(step, state, (x[order], t[order]))[0]

    zeros = [jnp.zeros_like(p) for p in start]
    state = (start, zeros, zeros, jnp.zeros(()))
    keys = jax.random.split(jax.random.PRNGKey(0), EPOCHS)

    def epochs(tick: Tick) -> None:
        now = state
        for key in keys:
            now = jax.block_until_ready(epoch(now, key))
            tick()

    return epochs


def training_table() -> None:
    heads, peak = Heads(), peak_rate()
    has_jax = importlib.util.find_spec("jax") is not None
    print("\nper step; × plain: per member, against the plain loop's step")
    names = ("members", "plain µs", "NLL µs", "BVM µs", "× plain", "BVM/NLL", "of peak", "JAX/BVM")
    print(" ".join(f"{name:>9}" for name in names))
    for members in (5, 25, 100):
        trainings = [
            plain_training(),
            stacked_training(members, GaussianLikelihood(heads)),
            stacked_training(members, AgreementObjective(heads)),
            *([jax_training(members)] if has_jax else []),
        ]
        plain, nll, bvm, *jax = quickest(*trainings)
        plain, nll, bvm = plain / STEPS, nll / (EPOCHS * STEPS), bvm / (EPOCHS * STEPS)
        share = 6 * members * B * (D * H + 2 * H) / bvm / peak
        against = [f"{t / (EPOCHS * (N // B)) / bvm:9.2f}" for t in jax] or [f"{'–':>9}"]
        print(
            f"{members:9} {plain * 1e6:9.0f} {nll * 1e6:9.0f} {bvm * 1e6:9.0f} "
            f"{members * plain / bvm:9.0f} {bvm / nll:9.2f} {share:9.1%}",
            *against,
        )
    if not has_jax:
        print("JAX is not installed: pip install -e '.[bench]'")


def prediction_table() -> None:
    print(f"\n{'rows':>9} {'members':>8} {'ms':>9} {'× products':>11} {'MB above input':>15}")
    for rows, members in ((250_000, 5), (500_000, 5), (1_000_000, 5), (250_000, 10), (250_000, 20)):
        stack = StackedMLP(ARCHITECTURE, members)
        stack.initialise(range(members))
        blocks = [block.numpy() for block in stack.blocks]
        x = np.random.default_rng(0).normal(size=(rows, D))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        raw_outputs(blocks, x, "relu", "cpu")
        above = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        chunk = torch.randn(members, 2**21 // (members * H), D)
        hidden = torch.randn(members, chunk.shape[1], H)
        w1, w2 = stack.weights
        seconds, bare = quickest(
            one_lap(lambda: raw_outputs(blocks, x, "relu", "cpu")),  # noqa: B023
            one_lap(lambda: (chunk @ w1, hidden @ w2)),  # noqa: B023
            rounds=5,
        )
        bare *= rows / chunk.shape[1]
        print(f"{rows:9} {members:8} {seconds * 1e3:9.0f} {seconds / bare:11.2f} {above:15.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    print(f"{torch.get_num_threads()} threads")
    training_table()
    wide_table()
    prediction_table()
