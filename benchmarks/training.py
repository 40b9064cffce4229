"""What a training step and a prediction cost, as ratios within one run.

    python benchmarks/training.py [--threads N]

Training: 8 features, 50 units, batch 32, N = 1,000. The plain loop is one ``torch.nn.Sequential``
per member with a DataLoader, the same mathematics and torch's own optimiser. With jax installed
(``[bench]``), the same stack is trained there too, jitted and scanned.
"""

import argparse
import importlib.util
import resource
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from accord.ensemble import raw_outputs
from accord.losses import BVMLoss
from accord.networks import Architecture, StackedMLP
from accord.objectives import Agreement, GaussianLikelihood, Heads
from accord.training import Settings, Task, train

D, H, B, N = 8, 50, 32, 1000
ARCHITECTURE = Architecture(D, (H,), 2)
EPS = 0.01
STEPS = -(-N // B)


def best_of(function: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the quickest run: what others do on the machine only ever adds."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def make_rows() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=generator)
    return x, torch.sigmoid(x[:, :1] + 0.1 * torch.randn(N, 1, generator=generator))


def plain_step() -> float:
    """Seconds per step of one network the usual way."""
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

    return best_of(epoch) / STEPS


def stacked_step(members: int, objective: object, epochs: int = 5) -> float:
    """Seconds per step of a whole stack, shuffling and gathering included."""
    x, t = make_rows()
    columns = {"target": t, "tolerance": torch.full_like(t, EPS)}
    task = Task(x, columns, tuple(range(members)))
    settings = Settings(epochs=epochs, batch_size=B, learning_rate=3e-3)
    return best_of(lambda: train([task], ARCHITECTURE, objective, settings), 5) / (epochs * STEPS)


def peak_share(members: int, seconds: float) -> float:
    """Share of the machine's matrix-product rate that a step reaches."""
    a = torch.randn(1024, 1024)
    peak = 2 * 1024**3 / best_of(lambda: a @ a)
    return 6 * members * B * (D * H + 2 * H) / seconds / peak


def jax_step(members: int) -> float:
    """Seconds per step of the same stack in JAX, one epoch as one scan."""
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
    key = jax.random.PRNGKey(0)
    return best_of(lambda: jax.block_until_ready(epoch(state, key))) / (N // B)


def training_table() -> None:
    heads = Heads()
    plain = plain_step()
    print(f"plain loop: {plain * 1e6:.0f} µs per step of one network")
    print(f"{'members':>8} {'µs/step':>9} {'× plain':>9} {'BVM/NLL':>9} {'of peak':>9}")
    for members in (5, 25, 100):
        bvm = stacked_step(members, Agreement(heads))
        nll = stacked_step(members, GaussianLikelihood(heads))
        share = peak_share(members, bvm)
        gain = members * plain / bvm
        print(f"{members:8} {bvm * 1e6:9.0f} {gain:9.0f} {bvm / nll:9.2f} {share:9.1%}")
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed: pip install -e '.[bench]'")
        return
    jax, ours = jax_step(100), stacked_step(100, Agreement(heads))
    print(f"JAX, 100 members: {jax * 1e6:.0f} µs per step, {jax / ours:.2f} × ours")


def prediction_table() -> None:
    print(f"\n{'rows':>9} {'members':>8} {'ms':>9} {'× products':>11} {'MB above input':>15}")
    for rows, members in ((250_000, 5), (500_000, 5), (1_000_000, 5), (250_000, 10), (250_000, 20)):
        stack = StackedMLP(ARCHITECTURE, members)
        stack.initialise(range(members))
        blocks = [block.numpy() for block in stack.blocks]
        x = np.random.default_rng(0).normal(size=(rows, D))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = best_of(lambda: raw_outputs(blocks, x, "relu", "cpu"), 3)  # noqa: B023
        above = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        chunk = torch.randn(members, 2**21 // (members * H), D)
        hidden = torch.randn(members, chunk.shape[1], H)
        w1, w2 = stack.weights
        bare = best_of(lambda: (chunk @ w1, hidden @ w2), 3) * rows / chunk.shape[1]  # noqa: B023
        print(f"{rows:9} {members:8} {seconds * 1e3:9.0f} {seconds / bare:11.2f} {above:15.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    print(f"{torch.get_num_threads()} threads")
    training_table()
    prediction_table()
