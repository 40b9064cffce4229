"""How far long work is: shares of parts, and bars in a terminal and in a notebook."""

import sys
from types import SimpleNamespace

import pytest

from accord import _progress
from accord._progress import Bar, as_html, shown, silent


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock whose time is set by hand."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: made.now)
    return made


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A session of Jupyter that remembers the texts which were shown."""
    seen: list[str] = []

    class Handle:
        def update(self, page: str) -> None:
            seen.append(page)

    def display(page: str, *, display_id: bool) -> Handle:
        assert display_id
        seen.append(page)
        return Handle()

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    return seen


def test_a_bar_comes_late_and_goes_at_the_end(clock: SimpleNamespace) -> None:
    seen: list[str] = []
    report = Bar(seen.append, lambda share, what, seconds: f"{what} {share} {seconds}")
    report(0.1, "Reading")
    assert not seen
    clock.now = 10.0
    report(0.5, "Training")
    report(0.51)  # too soon after the last one
    clock.now = 20.0
    report(0.75)
    report(1.0)
    assert seen == ["Training 0.5 10.0", "Training 0.75 20.0", ""]


def test_short_work_shows_nothing(clock: SimpleNamespace) -> None:
    seen: list[str] = []
    report = Bar(seen.append, lambda *_: "bar")
    report(0.5, "Training")
    report(1.0)
    assert not seen


def test_a_notebook_shows_a_bar_unless_told_not_to(
    notebook: list[str], clock: SimpleNamespace
) -> None:
    assert shown(False) is silent
    report = shown(None)
    clock.now = 30.0
    report(0.5, "Training")
    report(1.0)
    assert 'value="0.500"' in notebook[0]
    assert "30 s, about 30 s left" in notebook[0]
    assert notebook[1:] == [""]


def test_elsewhere_a_bar_is_asked_for(
    clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(None) is shown(False) is silent
    report = shown(True)
    clock.now = 30.0
    report(0.25, "Training")
    report(1.0)
    assert "25 %  30 s, about 1 min 30 s left" in capsys.readouterr().err


def test_what_is_done_is_text_and_not_marks() -> None:
    assert "<b>" not in as_html(0.5, "<b>", 1.0)
