"""Links are checked when the site is written, without the network.

A link that leads to no page, or to no place on its page, is a warning, which ``-W`` makes an error.
Addresses elsewhere are left alone.
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging


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


def pages(site: Path) -> list[Path]:
    """The pages of a site, those of its theme left out."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def broken(site: Path) -> list[str]:
    """Links within the site that lead nowhere, each after the page that has it."""
    site = site.resolve()
    read = {path: Page(path) for path in pages(site)}
    return [
        f"{path.relative_to(site)}: {link}"
        for path, page in read.items()
        for link in page.links
        if not _leads_somewhere(link, path, read)
    ]


def _leads_somewhere(link: str, path: Path, read: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    place = unquote(parts.fragment)
    return target.exists() and (not place or target not in read or place in read[target].places)


def check(app: Sphinx, failure: Exception | None) -> None:
    """Warn of every broken link once the pages are there."""
    if failure is None and app.builder.name == "html":
        for link in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning("a link leads nowhere: %s", link)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
