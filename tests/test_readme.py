"""The README's Python blocks run, in order, as one session."""

import re
from pathlib import Path

import pandas as pd
import pytest
import torch

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.M | re.S)


def test_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), session)
    printed = capsys.readouterr().out
    for word in ("lower", "upper", "noise", "disagreement", "distance", "of 42 rows"):
        assert word in printed
    model, new = session["model"], session["new"]
    interval = model.predict_interval(new, coverage=0.9)
    inside = new["progression"].between(interval["lower"], interval["upper"])
    assert isinstance(interval, pd.DataFrame)
    assert inside.mean() > 0.75
    # the paper's method as printed, on the rows that the frame has last
    assert session["paper"].get_params()["tolerance"] == "1%"
    assert session["paper"].predict_interval(session["X"].tail(3)).shape == (3, 2)
    # the loss alone: it pulls the mean towards the target
    mean, targets = torch.zeros(8, requires_grad=True), torch.linspace(-1, 1, 8)
    session["loss"](mean, targets, torch.ones(8)).backward()
    assert torch.equal(mean.grad.sign(), -targets.sign())


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http|#)([^)#]+)\)", TEXT))
def test_links_lead_somewhere(path):
    assert (README.parent / path).exists()


def test_hops_name_what_is_there():
    """Every dotted name of the walks through the code can be imported."""
    import accord.cli
    import accord.portfolio.crossfit
    import accord.workflows
    from accord.persistence import save

    walk = TEXT.split("From a CSV to a model file")[1].split("## Limits")[0]
    assert "`portfolio.crossfit.try_recipe`" in walk
    assert callable(accord.portfolio.crossfit.try_recipe)
    assert "`workflows.fit_table`" in walk
    assert callable(accord.workflows.fit_table)
    assert "`persistence.save`" in walk
    assert callable(save)


def test_length():
    assert len(TEXT.splitlines()) <= 128
