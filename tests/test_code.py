"""Digests of code: what decides a result counts, and nothing else."""

from pathlib import Path

import pytest

from accord import _code as module
from accord._code import _meaning, _reachable, code_digest

PROGRAM = '"""Doc."""\n\ndef f(x):\n    """Doc."""\n    # why\n    return x + 1\n'


def test_words_and_layout_do_not_count() -> None:
    assert _meaning(PROGRAM) == _meaning("def f(x):\n    return (x  +  1)")
    assert _meaning(PROGRAM) != _meaning(PROGRAM.replace("+ 1", "+ 2"))


def test_imports_are_followed() -> None:
    reached = set(_reachable("accord.datasets"))
    assert {"accord.datasets.loading", "accord.datasets.registry"} <= reached
    assert "accord.splits" not in reached


def test_how_results_are_shown_does_not_count() -> None:
    """A changed table or claim must not cost a new training."""
    reached = set(_reachable("accord.paper.stacks"))
    assert {"accord.paper.sets", "accord.estimators.bvm"} <= reached
    shown = ("table1", "table3", "toy", "tables", "claims", "results", "page", "reproduction")
    assert not reached & {f"accord.paper.{name}" for name in shown}


def test_a_change_far_below_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _reachable("accord.datasets")
    before = code_digest("accord.datasets")
    changed_file = tmp_path / "loading.py"
    monkeypatch.setattr(
        module, "_reachable", lambda root: {**real, "accord.datasets.loading": changed_file}
    )
    changed_file.write_text(
        real["accord.datasets.loading"]
        .read_text()
        .replace("noise: float = 3.0", "noise: float = 2.0")
    )
    code_digest.cache_clear()
    changed = code_digest("accord.datasets")
    changed_file.write_text("# a comment more\n" + real["accord.datasets.loading"].read_text())
    code_digest.cache_clear()
    commented = code_digest("accord.datasets")
    code_digest.cache_clear()
    assert changed != before
    assert commented == before


def test_library_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest("accord.splits")
    code_digest.cache_clear()
    monkeypatch.setattr(module, "version", lambda name: "99")
    after = code_digest("accord.splits")
    code_digest.cache_clear()
    assert before != after


def test_the_whole_package_counts_to_the_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.py"
    monkeypatch.setattr(module, "_package", lambda: {"a.py": file})
    found = []
    for text in ("x = 1", "x = 1  # a comment", "x = 1"):
        file.write_text(text)
        code_digest.cache_clear()
        found.append(code_digest())
    code_digest.cache_clear()
    assert found[0] != found[1]
    assert found[0] == found[2]
