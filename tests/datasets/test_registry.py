"""The registry: complete, consistent with the paper, and helpful about names."""

import re

import pytest

from accord.datasets import info, names
from accord.datasets.registry import ENTRIES

PAPER = {  # the paper's name: ours, N, d
    "Boston housing": ("boston", 506, 13),
    "Concrete": ("concrete", 1030, 8),
    "Energy": ("energy", 768, 8),
    "Kin8nm": ("kin8nm", 8192, 8),
    "Naval propulsion plant": ("naval", 11934, 16),
    "Power plant": ("power", 9568, 4),
    "Protein": ("protein", 45730, 9),
    "Wine": ("wine", 1599, 11),
    "Yacht": ("yacht", 308, 6),
    "Google stocks": ("google", 1198, 60),
}


@pytest.mark.parametrize("title", PAPER)
def test_papers_names_and_sizes(title: str) -> None:
    entry = info(title)
    assert (entry.name, entry.n, entry.d) == PAPER[title]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_entry_is_complete(entry) -> None:
    assert entry.features
    assert len(dict(entry.features)) == entry.d, "feature names are distinct"
    assert entry.target[0] not in dict(entry.features)
    assert entry.description
    assert entry.licence
    for file in entry.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert re.fullmatch(r"https://\S+/[0-9a-f]{40}/\S+", file.url), "pinned to a commit"


def test_no_spelling_stands_for_two_datasets() -> None:
    for entry in ENTRIES:
        for spelling in (entry.name, entry.title, *entry.aliases):
            assert info(spelling) is entry
            assert info(spelling.upper().replace(" ", "_")) is entry


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("bostn", "boston"), ("yatch", "yacht"), ("power_plnt", "power"), ("Wines", "wine")],
)
def test_unknown_names_get_the_near_matches(typed: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"got '{typed}'\. Did you mean '{meant}'"):
        info(typed)


def test_hopeless_names_get_the_list() -> None:
    with pytest.raises(ValueError, match=r"got 'xyzzy'\. Known: boston, concrete") as caught:
        info("xyzzy")
    assert all(name in str(caught.value) for name in names())


def test_a_name_is_a_string() -> None:
    with pytest.raises(TypeError, match="name must be a string, got int"):
        info(3)  # type: ignore[arg-type]
