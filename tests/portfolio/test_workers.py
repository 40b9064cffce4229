"""One model in threads, in a forked process and in workers: the same answers, no deadlock."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray

from accord.portfolio import PortfolioRegressor

SECONDS = 60  # more than any of these takes; a deadlock takes for ever
X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))


@pytest.fixture(scope="module")
def model() -> PortfolioRegressor:
    y = X[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
    return PortfolioRegressor(effort="quick", time_budget=1e-3, random_state=0).fit(X, y)


def answer(model: PortfolioRegressor) -> NDArray[np.float64]:
    """Interval ends of many rows: products large enough for threads."""
    return model.predict_interval(np.tile(X, (50, 1)))


def test_eight_threads_at_once(model: PortfolioRegressor) -> None:
    expected, before = answer(model), torch.get_num_threads()
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(answer, model) for _ in range(24)]
        for future in futures:
            found = future.result(timeout=SECONDS)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert torch.get_num_threads() == before


def _send(model: PortfolioRegressor, pipe: Any) -> None:
    pipe.send(answer(model))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork"
)
@pytest.mark.parametrize("threads", [1, 2])
# Python warns of what is tested here: a fork of a process that has threads.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_after_a_prediction(model: PortfolioRegressor, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        expected = answer(model)
        ours, theirs = multiprocessing.get_context("fork").Pipe()
        child = multiprocessing.get_context("fork").Process(target=_send, args=(model, theirs))
        child.start()
        answered = ours.poll(SECONDS)
        if not answered:
            child.kill()
        assert answered, "the forked process did not answer"
        np.testing.assert_allclose(ours.recv(), expected, rtol=1e-12, atol=1e-12)
        child.join(SECONDS)
        assert child.exitcode == 0
    finally:
        torch.set_num_threads(before)


def test_workers_of_joblib(model: PortfolioRegressor) -> None:
    """Another process may count threads otherwise; a row's answer depends on that by rounding."""
    expected = answer(model)
    found = Parallel(n_jobs=2, timeout=SECONDS)(delayed(answer)(model) for _ in range(3))
    for answered in found:
        np.testing.assert_allclose(answered, expected, rtol=1e-12, atol=1e-12)
