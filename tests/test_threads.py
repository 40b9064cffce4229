"""Threads: one for small work, never more than allowed, as before afterwards; and processes."""

import subprocess
import sys

import pytest
import torch

from accord import _processes
from accord._processes import threads_for


@pytest.fixture
def two_threads(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(_processes, "available", lambda: 2)
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_small_work_gets_one_thread(two_threads):
    with threads_for(1000):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_large_work_gets_all_that_there_are(two_threads):
    with threads_for(1e12):
        assert torch.get_num_threads() == 2


def test_no_more_than_torch_was_set_to(two_threads):
    torch.set_num_threads(1)
    with threads_for(1e12):
        assert torch.get_num_threads() == 1


def test_an_error_restores_them(two_threads):
    with pytest.raises(KeyError), threads_for(10):
        raise KeyError
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("text", "allowed"), [("max 100000", None), ("150000 100000", 2), ("50000 100000", 1)]
)
def test_the_share_of_the_machine_counts(monkeypatch, tmp_path, text, allowed):
    limit = tmp_path / "cpu.max"
    limit.write_text(text)
    monkeypatch.setattr(_processes, "Path", lambda _: limit)
    monkeypatch.setattr(_processes.os, "sched_getaffinity", lambda _: set(range(8)))
    assert _processes.available() == (allowed or 8)


def test_a_server_starts_before_anything_heavy_is_imported():
    code = """
import sys
from multiprocessing import forkserver, get_all_start_methods
from accord._processes import server_of, start_server

if __name__ == "__main__":
    start_server("accord._version")
    if "forkserver" in get_all_start_methods():
        assert forkserver._forkserver._forkserver_pid is not None
    assert not {"torch", "numpy", "sklearn"} & set(sys.modules)
    with server_of("accord._version").Pool(1) as pool:
        print(pool.apply(len, ([1, 2, 3],)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "3"
