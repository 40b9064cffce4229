"""The README's Python blocks run, in order, as one session."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.M | re.S)


def test_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), session)
    assert session["interval"].shape == (300, 2)
    assert float(session["agreement"].probability.mean()) > 0.8
    # the loop of plain PyTorch has learnt something: well below the loss of agreeing by chance
    assert session["value"].item() < 2.5


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http|#)([^)#]+)\)", README.read_text()))
def test_links_lead_somewhere(path):
    assert (README.parent / path).exists()


def test_length():
    assert len(README.read_text().splitlines()) <= 130
