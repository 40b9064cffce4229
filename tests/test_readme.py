"""The README's Python blocks run, in order, as one session; its figures and ways are true."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import accord

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text()
GUIDE = README.with_name("CONTRIBUTING.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.M | re.S)


def test_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), session)
    printed = capsys.readouterr().out
    for word in ("lower", "upper", "noise", "disagreement", "distance"):
        assert word in printed
    model, new = session["model"], session["new"]
    interval = model.predict_interval(new, coverage=0.9)
    inside = new["progression"].between(interval["lower"], interval["upper"])
    assert isinstance(interval, pd.DataFrame)
    assert inside.mean() > 0.75
    # what the first block shows is what it prints, up to what another processor changes
    shown = np.array(re.findall(r"^# \d+ +([\d.]+) +([\d.]+)$", BLOCKS[0], flags=re.M), float)
    found = model.predict_interval(new.tail(3), coverage=0.9).to_numpy()
    assert np.abs(shown - found).max() < 0.25 * (found[:, 1] - found[:, 0]).min()
    assert str(model.is_unusual(new.tail(3))) in BLOCKS[0]
    # the paper's method as printed, on the rows that the frame has last
    assert session["paper"].get_params()["tolerance"] == "1%"
    assert session["paper"].predict_interval(session["X"].tail(3)).shape == (3, 2)
    # the loss alone: it pulls the mean towards the target
    mean, targets = torch.zeros(8, requires_grad=True), torch.linspace(-1, 1, 8)
    session["loss"](mean, targets, torch.ones(8)).backward()
    assert torch.equal(mean.grad.sign(), -targets.sign())


def test_what_is_said_of_the_default_was_measured():
    """Shares, widths and counts at the top of the page are those of the page of unseen tables."""
    measured = (README.parent / "docs/results/unseen.md").read_text()
    drawn = measured.split("## A hundred tables drawn at random")[1].split("##")[0]
    lines = re.findall(
        r"^\| ([^|]+) \| ([\d.]+%?) \| ([\d.]+%?) \| ([\d.]+%?) \|$", drawn, flags=re.M
    )
    figures = [line[1:] for line in lines]
    below, _, _, narrower, ours, theirs, inside, others, *_ = figures
    assert [line[0] for line in lines][4:6] == [
        "at least 85 % inside 90 % intervals",
        "the same, conformal quantiles",
    ]

    top = TEXT.split("## First session")[0]
    shown = re.findall(r"^\| [^|]+ \| ([\d.]+%) \| ([\d.]+%) \|$", top, flags=re.M)
    assert shown == list(zip(inside, others, strict=True))
    assert f"on {narrower[0]} of the 100 tables" in top
    assert "is lower on all." in top
    assert below[0] == "100"
    unusual, against = (sum(map(int, counts[1:])) for counts in (ours, theirs))
    assert f"on {unusual} of 200 splits, against {against}" in top


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http|#)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(path):
    assert (README.parent / path).exists()


class _ReachedError(BaseException):
    """Networks are about to be trained; nothing on the way may handle this."""


def test_the_walk_is_the_way_that_a_fit_takes(tmp_path, monkeypatch):
    """From the command to the training loop, the functions call each other as CONTRIBUTING says."""
    from accord.cli import application
    from accord.portfolio import networks

    walk = GUIDE.split("From a CSV to a model file")[1].split(";")[0]
    hops = re.findall(r"`([\w.]+)`\s+→", re.sub(r"\(.*?\)", "", walk))
    assert len(hops) == 6
    assert walk.startswith(" in seven hops")
    assert walk.endswith("`training.train`")
    called: list[str] = []

    def train(*_, **__):
        frame = sys._getframe(1)
        while frame is not None:
            module = frame.f_globals["__name__"].removeprefix("accord.")
            called.append(f"{module}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        raise _ReachedError

    monkeypatch.setattr(networks, "train", train)
    table = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)}).to_csv(table)
    with pytest.raises(_ReachedError):
        application.main(["fit", str(table), "-t", "y", "-o", str(tmp_path / "m"), "--no-report"])
    way = iter(reversed(called))
    for hop in hops:
        first, last = hop.split(".")[0], hop.split(".")[-1]
        assert any(step.endswith(last) or f".{last}." in step for step in way), hop
        assert first[0].isupper() or any(step.startswith(f"{first}.") for step in called)


def test_the_loss_is_found_in_three_hops():
    """The loss calls the primitive of the second file, and that the family of the third."""
    walk = GUIDE.split("The loss in three:")[1].split("\n")[0]
    first, *files = re.findall(r"`([^`]+)`", walk)
    assert first == "losses.BVMLoss"
    modules = {f"accord.{file.removesuffix('.py').replace('/', '.')}" for file in files}
    seen: set[str] = set()
    sys.setprofile(lambda frame, *_: seen.add(frame.f_globals.get("__name__", "")))
    try:
        accord.BVMLoss(tolerance=0.1)(torch.zeros(3), torch.ones(3), torch.ones(3))
    finally:
        sys.setprofile(None)
    assert len(modules) == 2
    assert modules <= seen


def test_length():
    assert len(TEXT.splitlines()) <= 126
