"""The documentation site: it builds without a warning, its links lead somewhere, it can be read.

The build runs every example and takes minutes, so these tests are slow; those of the sources, which
need neither Sphinx nor a browser, are in ``test_documentation.py``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

for package in ("sphinx", "furo", "myst_parser", "sphinx_gallery"):
    pytest.importorskip(package, reason=f"{package} is not installed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs" / "_extensions"))
links, reference_pages = import_module("links"), import_module("reference_pages")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WIDTHS = {"phone": 390, "desk": 1280}
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site. ``ACCORD_SITE`` names one that is built already."""
    if built := os.environ.get("ACCORD_SITE"):
        return Path(built).resolve()
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(target)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return target


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("P(|ŷ − t| ≤ ε)", "P(\\|ŷ − t\\| ≤ ε)"),
        ("shape (*, N) and (*, K)", "shape (\\*, N) and (\\*, K)"),
        ("a *word* and **Shape**: ``x | y``", "a *word* and **Shape**: ``x | y``"),
    ],
)
def test_mathematics_is_not_taken_for_marks(written: str, marked: str) -> None:
    assert reference_pages.without_marks(written) == marked


def test_formulas_and_sessions_are_left_alone() -> None:
    lines = ["text", ".. math::", "", "    |t|", "", "text", ">>> 1 | 2", "3", "", "text"]
    assert [lines[k] for k in reference_pages.running_text(lines)] == [
        *("text", "text", "", "text")
    ]


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    """The build checks its links; this is that it would notice."""
    (tmp_path / "a.html").write_text('<p id="here"></p><a href="b.html#there">b</a>')
    (tmp_path / "b.html").write_text('<a href="a.html#here">a</a><a href="https://example.org">')
    assert links.broken(tmp_path) == ["a.html: b.html#there"]
    (tmp_path / "b.html").unlink()
    assert links.broken(tmp_path) == ["a.html: b.html#there"]
    (tmp_path / "b.html").write_text('<img src="none.png"><i id="there"></i>')
    assert links.broken(tmp_path) == ["b.html: none.png"]


def test_links_lead_somewhere(site: Path) -> None:
    assert links.broken(site) == []


def test_every_public_name_is_described(site: Path) -> None:
    folder = site / "_generated" / "reference"
    packages = reference_pages.packages()
    assert {"tabular", "estimators", "workflows", "validation"} <= set(packages)
    for package in packages:
        described = links.Page(folder / f"{package}.html").places
        for name in import_module(f"accord.{package}").__all__:
            heading = name.lower().replace("_", "-").strip("-")
            assert {f"accord.{package}.{name}", heading} & described, f"{package}: {name}"


def test_examples_show_pictures(site: Path) -> None:
    folder = site / "_generated" / "gallery"
    scripts = list((ROOT / "docs" / "examples" / "gallery").glob("plot_*.py"))
    for script in scripts:
        shown = links.Page(folder / f"{script.stem}.html").links
        assert any("sphx_glr" in link for link in shown), script.name


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.mark.parametrize("width", WIDTHS.values(), ids=list(WIDTHS))
def test_every_page_opens_and_fits(site: Path, browser: Any, width: int) -> None:
    """No complaint, no request to elsewhere, a heading, and nothing that sticks out."""
    window = browser.new_page(viewport={"width": width, "height": 800})
    heard: list[str] = []
    window.on("console", lambda message: heard.append(message.text))
    window.on("pageerror", lambda error: heard.append(str(error)))
    window.on("request", lambda asked: heard.append(asked.url) if _foreign(asked.url) else None)
    wrong = []
    for path in links.pages(site):
        window.goto(path.as_uri())
        reach = window.evaluate("document.documentElement.scrollWidth")
        # the page of results gets its heading when something is sought
        headings = 0 if path.name == "search.html" else 1
        if reach > width or window.locator("h1").count() != headings:
            wrong.append(f"{path.relative_to(site)}: {reach} of {width} pixels")
    window.close()
    assert wrong == []
    assert heard == []


def _foreign(url: str) -> bool:
    return not url.startswith(("file:", "data:"))
