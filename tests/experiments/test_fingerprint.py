"""The fingerprint: moved by code that matters, unmoved by words."""

from pathlib import Path

import pytest

from accord.experiments import fingerprint as module
from accord.experiments.fingerprint import _meaning, _reachable, fingerprint

SOURCE = '"""Doc."""\n\ndef f(x):\n    """Doc."""\n    # why\n    return x + 1\n'


def test_words_and_layout_do_not_count() -> None:
    assert _meaning(SOURCE) == _meaning("def f(x):\n    return (x  +  1)")
    assert _meaning(SOURCE) != _meaning(SOURCE.replace("+ 1", "+ 2"))


def test_imports_are_followed() -> None:
    reached = set(_reachable("accord.datasets"))
    assert {"accord.datasets.loading", "accord.datasets.entries"} <= reached
    assert "accord.splits" not in reached


def test_a_change_far_below_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _reachable("accord.datasets")
    before = fingerprint("accord.datasets")
    toys = tmp_path / "toys.py"
    monkeypatch.setattr(module, "_reachable", lambda root: {**real, "accord.datasets.toys": toys})
    toys.write_text(
        real["accord.datasets.toys"].read_text().replace("noise: float = 3.0", "noise: float = 2.0")
    )
    fingerprint.cache_clear()
    changed = fingerprint("accord.datasets")
    toys.write_text("# a comment more\n" + real["accord.datasets.toys"].read_text())
    fingerprint.cache_clear()
    commented = fingerprint("accord.datasets")
    fingerprint.cache_clear()
    assert changed != before
    assert commented == before


def test_library_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint("accord.splits")
    fingerprint.cache_clear()
    monkeypatch.setattr(module, "version", lambda name: "99")
    after = fingerprint("accord.splits")
    fingerprint.cache_clear()
    assert before != after
