"""The documentation site: it builds without a warning, its links lead somewhere, it can be read.

The build runs every example and takes minutes, so these tests are slow; those of the sources, which
need neither Sphinx nor a browser, are in ``test_documentation.py``.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

for package in ("sphinx", "furo", "myst_parser", "sphinx_gallery"):
    pytest.importorskip(package, reason=f"{package} is not installed")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
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


def pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


class Page(HTMLParser):
    """What a page links to, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := named.get(key))}
        self.links += [value for key in ("href", "src") if (value := named.get(key))]


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("P(|ŷ − t| ≤ ε)", "P(\\|ŷ − t\\| ≤ ε)"),
        ("shape (*, N) and (*, K)", "shape (\\*, N) and (\\*, K)"),
        ("a *word* and **Shape**: ``x | y``", "a *word* and **Shape**: ``x | y``"),
    ],
)
def test_mathematics_is_not_taken_for_marks(monkeypatch, written: str, marked: str) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    assert import_module("reference_pages").without_marks(written) == marked


def test_formulas_and_sessions_are_left_alone(monkeypatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    lines = ["text", ".. math::", "", "    |t|", "", "text", ">>> 1 | 2", "3", "", "text"]
    assert [lines[k] for k in import_module("reference_pages").running_text(lines)] == [
        *("text", "text", "", "text")
    ]


def test_links_lead_somewhere(site: Path) -> None:
    read = {path: Page(path) for path in pages(site)}
    broken = []
    for path, page in read.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith(("//", "data:")):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            exists = target.exists() and (
                not place or target not in read or place in read[target].places
            )
            if not exists:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_every_public_name_is_described(site: Path) -> None:
    import accord

    described = set().union(
        *(Page(path).places for path in (site / "_generated" / "reference").glob("*.html"))
    )
    for package in ("agreement", "distributions", "estimators", "losses", "metrics", "plots"):
        for name in getattr(accord, package).__all__:
            assert {f"accord.{package}.{name}", name.lower().replace("_", "-")} & described


def test_examples_show_pictures(site: Path) -> None:
    folder = site / "_generated" / "gallery"
    scripts = list((ROOT / "docs" / "examples" / "gallery").glob("plot_*.py"))
    for script in scripts:
        shown = Page(folder / f"{script.stem}.html").links
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
    for path in pages(site):
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
