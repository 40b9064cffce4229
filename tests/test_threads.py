"""Threads: one for small work, never more than allowed, and as before afterwards."""

import pytest
import torch

from accord import _threads
from accord._threads import threads_for


@pytest.fixture
def two_threads(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(_threads, "available", lambda: 2)
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
    monkeypatch.setattr(_threads, "Path", lambda _: limit)
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _: set(range(8)))
    assert _threads.available() == (allowed or 8)
