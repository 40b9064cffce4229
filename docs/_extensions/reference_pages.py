"""The reference: one page per package, with every name of its ``__all__``."""

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import accord
from accord.estimators import DistributionalRegressor

FOLDER = "_generated/reference"
# A name that several packages export is described in the first of these that has it.
FIRST = ("tabular", "portfolio", "estimators", "agreement", "distributions")
_COLON = "\ue000"  # stands for a colon while napoleon reads; occurs in no text


def packages() -> list[str]:
    """The public packages, those that most users need first, the others by name."""
    found = [each.name for each in pkgutil.iter_modules(accord.__path__) if each.name[0] != "_"]
    return [*FIRST, *sorted(set(found) - set(FIRST) - {"cli"})]


def homes() -> dict[int, str]:
    """Where each class and function is described, by its identity."""
    found: dict[int, str] = {}
    for package in packages():
        module = import_module(f"accord.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if _described_by_itself(value):
                found.setdefault(id(value), f"accord.{package}.{name}")
    return found


def _described_by_itself(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def package_page(package: str, home: dict[int, str]) -> str:
    """The text of a package's page."""
    module = import_module(f"accord.{package}")
    title = f"accord.{package}"
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
    for name in sorted(module.__all__, key=str.lower):
        lines += _entry(module, name, home)
    return "\n".join(lines)


def _entry(module: ModuleType, name: str, home: dict[int, str]) -> list[str]:
    value, path = getattr(module, name), f"{module.__name__}.{name}"
    if not _described_by_itself(value):
        return [*_heading(name), f".. py:data:: {path}", "", *_definition(module, name), ""]
    described = home[id(value)]
    role = "class" if inspect.isclass(value) else "func"
    if described != path:
        return [*_heading(name), f"The same as :{role}:`{described}`.", ""]
    if role == "func":
        return [*_heading(name), f".. autofunction:: {path}", ""]
    return [*_heading(name), f".. autoclass:: {path}", "   :members:", *_inherited(value), ""]


def _definition(module: ModuleType, name: str) -> list[str]:
    """What the source says of a constant or a type: a text below it, and its value if short."""
    for path in sorted(Path(str(module.__file__)).parent.glob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, after in pairwise([*body, ast.Pass()]):
            if name not in _assigned(node):
                continue
            value = ast.unparse(node.value)  # type: ignore[attr-defined]
            text = after.value.value if _is_text(after) else ""  # type: ignore[attr-defined]
            shown = [f"   ``{name} = {value}``"] if len(value) < 100 else []
            return [*(f"   {line.strip()}" for line in text.splitlines()), "", *shown]
    return []


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _inherited(value: type) -> list[str]:
    """Regressors show all they can do, but for what is scikit-learn's; others name their bases."""
    if not issubclass(value, DistributionalRegressor):
        ours = any(base.__module__.startswith("accord") for base in value.__bases__)
        return ["   :show-inheritance:"] if ours else []
    foreign = [base.__name__ for base in value.__mro__ if not base.__module__.startswith("accord")]
    return [f"   :inherited-members: {', '.join(foreign)}"]


def _heading(name: str) -> list[str]:
    return [name, "-" * len(name), ""]


def names_page(home: dict[int, str]) -> str:
    """Every name of ``accord`` itself, and where it is described."""
    lines = ["accord", "======", "", "What ``import accord`` offers. Each name is loaded on first"]
    lines += ["use, so that the import costs nothing.", "", ".. list-table::", "   :widths: 30 70"]
    lines += ["   :header-rows: 1", "", "   * - name", "     - what it is"]
    for name in sorted(accord.__all__, key=str.lower):
        value = getattr(accord, name)
        if name == "__version__":
            link, about = "``accord.__version__``", "The version, as text."
        elif inspect.ismodule(value):
            link, about = f":mod:`accord.{name}`", _first_sentence(value)
        else:
            role = "class" if inspect.isclass(value) else "func"
            link, about = f":{role}:`accord.{name} <{home[id(value)]}>`", _first_sentence(value)
        lines += [f"   * - {link}", f"     - {about}"]
    return "\n".join(lines)


def _first_sentence(value: Any) -> str:
    return without_marks((inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " "))


def index_page() -> str:
    """The contents of the reference: each package in a sentence."""
    about = {package: _first_sentence(import_module(f"accord.{package}")) for package in packages()}
    lines = ["Python reference", "================", "", "Every public name, package by package."]
    lines += ["Most users need ``accord`` and the first three packages only.", ""]
    return "\n".join(lines + contents({"accord": "What ``import accord`` offers.", **about}))


def contents(pages: dict[str, str]) -> list[str]:
    """A list of pages, each with a sentence about it."""
    lines = [".. list-table::", "   :widths: 30 70", "   :class: contents-list", ""]
    for page, about in pages.items():
        lines += [f"   * - :doc:`{page}`", f"     - {about}"]
    return [*lines, "", ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages)]


def plain_marks(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Docstrings write |x| and (*, N) as mathematics does: neither is a mark there."""
    if what in ("property", "attribute") and lines:
        # napoleon would take what stands before a colon for a type
        lines[0] = lines[0].replace(": ", _COLON)
    for place in running_text(lines):
        lines[place] = without_marks(lines[place])


def running_text(lines: list[str]) -> Iterator[int]:
    """The places of lines that are neither part of a session nor of a displayed formula."""
    in_session, formula = False, None
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        in_session = line.lstrip().startswith(">>>") or (in_session and bool(line.strip()))
        if line.lstrip().startswith(".. math::"):
            formula = indent
        elif formula is not None and line.strip() and indent <= formula:
            formula = None
        if not in_session and formula is None:
            yield place


def restore_colons(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Undo what `plain_marks` did to keep a colon from napoleon."""
    lines[:] = [line.replace(_COLON, ": ") for line in lines]


def without_marks(text: str) -> str:
    """Text whose bars and lone asterisks stand for themselves."""
    marked = re.split(r"(``.*?``|`[^`]*`|\*\*\w[^*]*\*\*|\*\w[^*]*\w\*)", text)
    return "".join(
        part if k % 2 else re.sub(r"([*|])", r"\\\1", part) for k, part in enumerate(marked)
    )


def skip_requests(
    app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn adds to every estimator for routing metadata."""
    return True if re.fullmatch(r"[gs]et_\w+_(request|routing)", name) else None


def write_pages(app: Sphinx) -> None:
    """Write the pages before sources are read."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    home = homes()
    pages = {"index": index_page(), "accord": names_page(home)}
    pages |= {package: package_page(package, home) for package in packages()}
    for name, text in pages.items():
        write_if_changed(folder / f"{name}.rst", text + "\n")


def write_if_changed(path: Path, text: str) -> None:
    """Leave a page that is the same alone, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    # before napoleon turns sections into fields
    app.connect("autodoc-process-docstring", plain_marks, priority=400)
    app.connect("autodoc-process-docstring", restore_colons, priority=600)
    app.connect("autodoc-skip-member", skip_requests)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
