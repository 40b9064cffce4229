"""How far long work is: shares of parts, and bars in a terminal and in a notebook."""

import sys
from types import SimpleNamespace

import pytest

from accord import _progress
from accord._progress import Bar, Progress, as_html, say, shown, silent
from accord.cli import terminal


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


def test_what_follows_is_new_work_with_its_own_time(clock: SimpleNamespace) -> None:
    seen: list[str] = []
    report = Bar(seen.append, lambda share, what, seconds: f"{what} {seconds}")
    clock.now = 10.0
    report(0.5, "Training")
    report(1.0)
    clock.now = 13.0
    report(0.5, "Training again")
    assert seen == ["Training 10.0", "", "Training again 3.0"]


def test_a_terminal_has_one_line_of_bar_and_words_above_it(
    at_once: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    report = shown(True)
    report(0.5, "Training " * 10)
    say("Note: few rows.")
    report(1.0)
    bar, words, end = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert len(bar) == 29  # a longer one would wrap, and could not be removed
    assert bar.startswith("Training Training")
    assert words == "Note: few rows.\n"
    assert end == ""


def test_the_command_removes_its_bar_after_an_error(
    at_once: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(report: Progress) -> None:
        report(0.5, "Training")
        raise KeyError

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with pytest.raises(KeyError), terminal.progress(quiet=False) as report:
        fail(report)
    assert capsys.readouterr().err.endswith("\r\x1b[K")


def test_what_is_done_is_text_and_not_marks() -> None:
    assert "<b>" not in as_html(0.5, "<b>", 1.0)
