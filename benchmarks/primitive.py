"""What the BVM loss costs beside Gaussian losses, in the same run.

    python benchmarks/primitive.py                 # a million rows, and one training step's batch
    python benchmarks/primitive.py --families      # the other families too, which are slower

Large: value and gradient of ``BVMLoss`` over those of ``torch.nn.GaussianNLLLoss``; those of the
normal family in float32 are to stay below 3. Small: the closed-form slopes of a batch of 3,200, as
one step of a hundred stacked networks takes them, over those of a Gaussian likelihood in as few
operations. All take their turn and the least time of each counts, so that other work on the machine
disturbs little; for the same reason torch has one thread unless more are asked for.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from accord._numerics import NORMAL, agreement_slopes
from accord.losses import BVMLoss

LIMIT = 3.0
TOLERANCES = (0.0, 1e-3, 0.1, 0.5, 1.0, 3.0, 30.0)
OTHERS = {"laplace": None, "logistic": None, "student-t": 5.0}


def batch(n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """input, target and var of a model that is about right."""
    generator = torch.Generator().manual_seed(0)
    target, noise = torch.randn(2, n, generator=generator, dtype=dtype)
    var = 0.1 + torch.rand(n, generator=generator, dtype=dtype)
    return target + var.sqrt() * noise, target, var


def least_times(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of each task, the least of several rounds in which all take their turn."""
    best = dict.fromkeys(tasks, float("inf"))
    for round_ in range(rounds + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            if round_ > 0:  # the first one warms up
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def value_and_gradient(loss: nn.Module, n: int, dtype: torch.dtype) -> Callable[[], object]:
    mu, t, var = batch(n, dtype)
    mu.requires_grad_()
    var.requires_grad_()

    def task() -> None:
        mu.grad = var.grad = None
        loss(mu, t, var).backward()

    return task


def gaussian_slopes(mu: Tensor, var: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The Gaussian likelihood with its slopes, in as few operations as it takes."""
    error, precision = mu - t, var.reciprocal()
    by_mu = error * precision
    loss = torch.log(var).add_(error.mul_(by_mu)).mul_(0.5)
    return loss, by_mu, precision.sub_(by_mu * by_mu).mul_(0.5)


def large(n: int, rounds: int, *, families: bool) -> bool:
    print(f"value and gradient on {n:,} rows, over torch.nn.GaussianNLLLoss")
    within = True
    for dtype in (torch.float32, torch.float64):
        tasks = {"GaussianNLLLoss": value_and_gradient(nn.GaussianNLLLoss(), n, dtype)}
        for eps in TOLERANCES:
            tasks[f"normal, tolerance {eps:g}"] = value_and_gradient(BVMLoss(eps), n, dtype)
        dense = BVMLoss(0.5, density=True, learn_tolerance=True).to(dtype)
        tasks["normal, tolerance learnt"] = value_and_gradient(dense, n, dtype)
        for family, df in OTHERS.items() if families else ():
            loss = BVMLoss(0.5, family=family, df=df)
            tasks[f"{family}, tolerance 0.5"] = value_and_gradient(loss, n, dtype)
        times = least_times(tasks, rounds)
        base = times["GaussianNLLLoss"]
        for name, seconds in times.items():
            print(f"  {str(dtype)[6:]}  {name:26s} {1e3 * seconds:8.1f} ms {seconds / base:6.2f}")
            if dtype == torch.float32 and name.startswith("normal, tolerance"):
                within &= seconds <= LIMIT * base
    return within


def small(n: int, rounds: int) -> None:
    print(f"slopes of a batch of {n:,}, over those of the Gaussian likelihood")
    mu, t, var = batch(n, torch.float32)
    tasks: dict[str, Callable[[], object]] = {"Gaussian": lambda: gaussian_slopes(mu, var, t)}
    for eps in TOLERANCES:
        rows = torch.full_like(t, eps)
        tasks[f"tolerance {eps:g}"] = lambda rows=rows: agreement_slopes(
            NORMAL, mu, var, t, rows, density=True
        )
    torchs = value_and_gradient(nn.GaussianNLLLoss(), n, torch.float32)
    tasks["GaussianNLLLoss, autograd"] = torchs
    tasks["BVMLoss(0.1), autograd"] = value_and_gradient(BVMLoss(0.1), n, torch.float32)
    times = least_times(tasks, rounds)
    for name, seconds in times.items():
        print(f"  {name:26s} {1e6 * seconds:8.1f} µs {seconds / times['Gaussian']:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--families", action="store_true", help="time the other families too")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, threads: {options.threads}")
    within = large(options.rows, options.rounds, families=options.families)
    small(3_200, 20 * options.rounds)
    print(f"float32, normal: {'within' if within else 'BEYOND'} {LIMIT:g} Gaussian losses")
    raise SystemExit(0 if within else 1)


if __name__ == "__main__":
    main()
