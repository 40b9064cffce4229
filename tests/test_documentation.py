"""What the pages show runs and exists, and the numbers of the theory are right."""

import ast
import doctest
import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import optimize, stats
from scipy.special import log_ndtr

from accord.cli import application

DOCS = Path(__file__).parents[1] / "docs"


PAGES = {
    str(path.relative_to(DOCS)): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if not {"_build", "_generated"} & set(path.parts)
}


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[name], flags=re.M | re.S)


def pages_with(language: str) -> list[str]:
    return [name for name in PAGES if blocks(name, language)]


@pytest.mark.parametrize("name", pages_with("pycon"))
def test_sessions_give_what_they_show(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(blocks(name, "pycon"))
    session = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(session, out=report.append)
    assert session.examples
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("name", pages_with("python"))
def test_programs_run_and_print(name, tmp_path, monkeypatch, capsys) -> None:
    """The blocks of a page are one program."""
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    for block in blocks(name, "python"):
        exec(compile(block, name, "exec"), session)
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in pages_with("pycon") if blocks(name, "python")])
def test_pages_run_from_top_to_bottom(name: str, tmp_path, monkeypatch) -> None:
    """Sessions and programs of a page are one, for a reader who types all of it."""
    monkeypatch.chdir(tmp_path)
    in_order = re.findall(r"^```(?:python|pycon)\n(.*?)^```", PAGES[name], flags=re.M | re.S)
    session: dict[str, object] = {}
    for block in in_order:
        typed = [part.source for part in doctest.DocTestParser().get_examples(block)]
        for source in typed or [block]:
            exec(compile(source, name, "exec"), session)


def test_the_first_commands_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ accord (.*)$", PAGES["start/first.md"], flags=re.M)
    assert [shlex.split(line)[0] for line in commands] == ["datasets", "fit", "predict", "evaluate"]
    for line in commands:
        done = CliRunner().invoke(application, shlex.split(line))
        assert done.exit_code == 0, done.output
    assert "too good" in done.output
    written = {path.name for path in tmp_path.iterdir()}
    assert {"model.accord", "report.html", "report.json", "predictions.csv"} <= written


def test_every_command_that_is_shown_parses() -> None:
    """Options and commands of all pages exist; nothing is run."""
    shown = [
        line
        for text in PAGES.values()
        for line in re.findall(r"^\$ accord (.*?)(?:  +#.*)?$", text, flags=re.M)
    ]
    assert len(shown) > 8
    for line in shown:
        name, *arguments = shlex.split(line)
        command = application.commands[name]
        known = {option for each in command.params for option in [*each.opts, *each.secondary_opts]}
        used = {word for word in arguments if word.startswith("-") and word != "-"}
        assert used <= known | {"--help"}, line


def test_the_report_has_the_keys_that_are_described(fitted) -> None:
    rows = PAGES["reference/formats.md"].split("<!-- report keys -->")[1].split("## ")[0]
    described = {
        key
        for line in rows.splitlines()
        if line.startswith("| `")
        for key in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert described == set(fitted.to_json())


def test_links_between_pages_lead_somewhere() -> None:
    for name, text in PAGES.items():
        for path in re.findall(r"\]\((?!http|#)([^)#]+)(?:#[^)]*)?\)", text):
            target = (DOCS / name).parent / path
            generated = re.fullmatch(r".*/?_generated/(howto|gallery)/(plot_\w+)", path)
            if generated:
                target = DOCS / "examples" / generated[1] / f"{generated[2]}.py"
            assert target.exists() or path.endswith("/index"), f"{name}: {path}"


def test_what_is_included_is_there() -> None:
    """A page that shows a part of another file names marks that this file has once."""
    marks = 0
    for name, text in PAGES.items():
        for path, options in re.findall(r"^```{include} (\S+)\n((?::.*\n)*)", text, flags=re.M):
            source = ((DOCS / name).parent / path).read_text(encoding="utf-8")
            for mark in re.findall(r"^:(?:start-after|end-before): (.*)$", options, flags=re.M):
                assert source.count(mark) == 1, f"{name}: {mark}"
                marks += 1
    assert marks == 1


def test_which_tool_when_has_the_figures_that_were_measured() -> None:
    """NLL of all methods, and coverage and width of ours, as on the page of all tables."""
    found = 0
    for kind, heading in (("random rows", "Random rows"), ("most unusual rows", "The most anom")):
        cited = PAGES["start/which.md"].split(f"| {kind} |")[1].split("\n\n")[0]
        measured = PAGES["results/default.md"].split(f"## {heading}")[1].split("## ")[0]
        for column, name in enumerate(("energy", "concrete"), start=1):
            scores, intervals = re.findall(rf"^\| {name} \|(.*)\|$", measured, flags=re.M)
            accord, _, gp, ngboost, catboost, ridge = scores.replace(" ", "").split("|")[:6]
            cells = [line.split("|")[1 + column].strip() for line in cited.splitlines()[2:]]
            nll = [cell.split(";")[0] for cell in cells]
            assert nll == [accord, ngboost, gp, catboost, "–", "–", ridge]
            assert cells[0].split("; ")[1:] == intervals.split("|")[2].strip().split(", ")
            found += 1
    assert found == 4


EXAMPLES = {
    folder: sorted((DOCS / "examples" / folder).glob("*.py")) for folder in ("howto", "gallery")
}


def test_there_are_examples_and_they_are_short() -> None:
    assert len(EXAMPLES["howto"]) >= 12
    assert len(EXAMPLES["gallery"]) >= 15
    lengths = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES["gallery"]}
    assert {name for name, length in lengths.items() if length > 30} == set()


@pytest.mark.parametrize("path", [*EXAMPLES["howto"], *EXAMPLES["gallery"]], ids=lambda p: p.stem)
def test_examples_use_names_that_are_there(path: Path) -> None:
    """Running them takes minutes and is the site's business; what they import exists."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("accord"):
            module = import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}")


def table(after: str) -> list[list[float]]:
    """The numbers of the first table after a mark in the theory."""
    text = (DOCS / "theory.md").read_text().split(f"<!-- {after} -->")[1]
    lines = [line for line in text.split("\n\n")[1].splitlines() if line.startswith("|")][2:]
    return [
        [float(cell.replace("−", "-")) for cell in line.strip("|").split("|")] for line in lines
    ]


def log_agreement(z, h):
    """log[Φ(z + h) − Φ(z − h)], written independently of the library."""
    upper, lower = log_ndtr(h - np.abs(z)), log_ndtr(-h - np.abs(z))
    return upper + np.log1p(-np.exp(lower - upper))


T = np.linspace(-12, 12, 40_001)
WEIGHT = stats.norm.pdf(T) * (T[1] - T[0])
ENTROPY = 0.5 * np.log(2 * np.pi * np.e)


def smoothed_nll(variance: float, eps: float) -> float:
    sigma = np.sqrt(variance)
    return float(-(WEIGHT * log_agreement(T / sigma, eps / sigma)).sum() + np.log(2 * eps))


def coverage(half_width: float) -> float:
    return 2 * float(stats.norm.cdf(half_width)) - 1


@pytest.mark.parametrize("row", table("population optima"), ids=lambda row: f"eps={row[0]:g}")
def test_population_optima(row: list[float]) -> None:
    eps = row[0]
    found = optimize.minimize_scalar(
        lambda log_v: smoothed_nll(np.exp(log_v), eps), bounds=(-6, 1), method="bounded"
    )
    v = float(np.exp(found.x))
    sigma = np.sqrt(v)
    # q_ε's cdf is the mean of Φ over the box: ∫Φ(u) du = uΦ(u) + φ(u).
    area = lambda u: u * stats.norm.cdf(u) + stats.norm.pdf(u)  # noqa: E731
    cdf = lambda y: (area((y + eps) / sigma) - area((y - eps) / sigma)) * sigma / (2 * eps)  # noqa: E731
    end = optimize.brentq(lambda y: cdf(y) - 0.975, 0, 20)
    expected = [
        eps,
        v,
        1 - eps**2 / 3,
        np.sqrt(v + eps**2 / 3),
        coverage(1.959964 * sigma),
        coverage(end),
        0.5 * np.log(2 * np.pi * v) + 0.5 / v - ENTROPY,
        found.fun - ENTROPY,
    ]
    np.testing.assert_allclose(row, expected, atol=6e-4)


@pytest.mark.parametrize("row", table("one point"), ids=lambda row: f"sigma={row[0]:g}")
def test_loss_of_one_point(row: list[float]) -> None:
    sigma = 1 / np.sqrt(3) if row[0] == 0.577 else row[0]
    exact = -np.log(2 * stats.norm.cdf(1 / sigma) - 1) + np.log(2)
    series = 0.5 * np.log(2 * np.pi * sigma**2) + 1 / (6 * sigma**2)
    np.testing.assert_allclose(row[1:], [exact, series], atol=6e-4)


def test_averaged_expansion_shrinks_the_variance() -> None:
    """v² − (s² + ε²/3)v + (2ε²/3)s² = 0 has the root s² − ε²/3 up to ε⁴."""
    for eps in (0.02, 0.1, 0.2):
        root = np.roots([1, -(1 + eps**2 / 3), 2 * eps**2 / 3]).max()
        assert abs(root - (1 - eps**2 / 3)) < 2 * eps**4


def test_misprinted_mixture_variance_is_negative() -> None:
    sigma, mu = np.array([0.1, 0.1]), np.array([2.0, 2.0])
    assert (sigma**2 + mu).mean() - mu.mean() ** 2 < 0
    assert (sigma**2 + mu**2).mean() - mu.mean() ** 2 == pytest.approx(0.01)
