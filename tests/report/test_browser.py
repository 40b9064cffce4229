"""The report in a real browser: silent, self-sufficient, legible on a phone and on a desk."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accord.report import fit_report
from accord.workflows import FeatureEffect, FitResult

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed")

PHONE, DESK = (390, 844), (1280, 800)
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(fitted: FitResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(fit_report(fitted), encoding="utf-8")
    return path


@pytest.fixture(
    params=[(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")],
    ids=["phone light", "phone dark", "desk light", "desk dark"],
)
def view(browser: Any, report: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The report open in a window, and what the browser complained about or asked for."""
    (width, height), scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.heard = []
    page.on("console", lambda message: page.heard.append(message.text))
    page.on("pageerror", lambda error: page.heard.append(str(error)))
    page.on("dialog", lambda dialog: page.heard.append(dialog.message))
    page.on("request", lambda asked: page.heard.append(asked.url) if _foreign(asked.url) else None)
    page.goto(report.as_uri())
    yield page
    page.close()


def _foreign(url: str) -> bool:
    return not url.startswith(("file:", "data:"))


def test_no_complaint_and_no_request(view: Any) -> None:
    view.wait_for_load_state("networkidle")
    assert view.heard == []


def test_nothing_sticks_out(view: Any) -> None:
    assert view.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_figures_are_visible_and_not_tiny(view: Any) -> None:
    figures = view.locator("figure svg:visible")
    assert figures.count() >= 5
    for place in range(figures.count()):
        box = figures.nth(place).bounding_box()
        assert box["width"] >= 300
        assert box["height"] >= 150


def test_the_first_screen_has_verdict_numbers_and_plot(view: Any) -> None:
    height = view.viewport_size["height"]
    assert view.locator("h1").bounding_box()["y"] < height / 2
    numbers = view.locator(".numbers strong")
    assert numbers.count() == 4
    assert max(numbers.nth(i).bounding_box()["y"] for i in range(4)) < height
    assert view.locator("figure svg:visible").first.bounding_box()["y"] < 0.85 * height


def test_letters_are_legible(view: Any) -> None:
    """Text in figures is at least 8 pixels high, other text at least 12."""
    smallest = view.evaluate(
        """() => Math.min(...[...document.querySelectorAll('figure svg text')]
            .filter(text => text.getBoundingClientRect().width)
            .map(text => parseFloat(getComputedStyle(text).fontSize)
                 * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b)))"""
    )
    assert smallest >= 8
    body = view.evaluate(
        """() => Math.min(...[...document.querySelectorAll('main p, main td, main span')]
            .map(text => parseFloat(getComputedStyle(text).fontSize)))"""
    )
    assert body >= 12


def test_ink_and_paper_differ_enough(view: Any) -> None:
    """The contrast of running and of soft text, as WCAG AA asks."""
    ratio = view.evaluate(
        """() => {
          const light = colour => {
            const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => {
              v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const paper = light(getComputedStyle(document.body).backgroundColor);
          return ['p', 'figcaption', '.badge', '.numbers span'].map(name => {
            const ink = light(getComputedStyle(document.querySelector(name)).color);
            const [a, b] = [Math.max(ink, paper), Math.min(ink, paper)];
            return (a + 0.05) / (b + 0.05); });
        }"""
    )
    assert min(ratio) >= 4.5


def test_axe_finds_nothing_to_mend(view: Any) -> None:
    """Names, roles, contrast, headings and tables, as assistive technology meets them."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    view.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = view.evaluate("axe.run()")["violations"]
    assert [(each["id"], each["impact"], each["nodes"][0]["html"]) for each in found] == []


def test_hostile_names_stay_text(view: Any) -> None:
    assert view.locator("script").count() == 1
    assert view.get_by_text("<script>alert(1)</script>").count() >= 1


def test_rows_can_be_searched_and_sorted(view: Any) -> None:
    rows = view.locator("#rows tbody tr:visible")
    assert rows.count() == 150
    view.get_by_label("Show").select_option("outside")
    outside = rows.count()
    assert 0 < outside < 20
    assert view.locator(".tools output").inner_text() == f"{outside} of 150 rows"
    view.get_by_label("Show").select_option("")
    view.get_by_label("Search").fill("2020-07-04")
    assert rows.count() == 1
    view.get_by_label("Search").fill("")
    heading = view.locator("#rows th", has_text="width")
    for order, sign in (("ascending", 1), ("descending", -1)):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        widths = view.evaluate(
            "[...document.querySelectorAll('#rows tbody tr')].map(r => +r.cells[5].textContent)"
        )
        assert widths == sorted(widths, key=lambda width: sign * width)


def test_the_slider_moves_coverage_and_width(view: Any) -> None:
    panel, slider = view.locator(".level"), view.get_by_role("slider", name="Stated coverage")
    wide = panel.inner_text()
    slider.focus()
    for _ in range(15):
        slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "80 %"
    narrow = panel.inner_text()
    view.get_by_role("radio", name="unusual rows").check()
    unusual = panel.inner_text()
    assert "80 %" in narrow
    assert "15 unusual rows" in unusual
    widths = [float(re.search(r"Mean width ([\d.]+)", text)[1]) for text in (wide, narrow)]
    assert widths[1] < widths[0]


def test_points_and_receipts_can_be_read(view: Any) -> None:
    plot = view.locator(".plot:visible").first
    plot.hover()
    assert re.match(r"Row \d+\s*observed", plot.get_by_role("status").inner_text())
    view.mouse.move(0, 0)
    assert not plot.get_by_role("status").is_visible()
    plot.focus()
    plot.press("ArrowRight")
    first = plot.get_by_role("status").inner_text()
    plot.press("ArrowRight")
    assert plot.get_by_role("status").inner_text() != first
    receipt = view.locator(".receipt").nth(1)
    assert not receipt.get_by_text("What would narrow it most").is_visible()
    receipt.locator("summary").press("Enter")
    assert receipt.get_by_text("What would narrow it most").is_visible()


def test_without_a_script_all_is_there_and_no_control_is_dead(browser: Any, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#rows tbody tr").count() == 150
    assert page.locator(".receipt").count() == 12
    assert page.locator("input:visible, select:visible, th button").count() == 0
    assert page.get_by_role("cell", name="99 %", exact=True).count() >= 1
    context.close()


def test_it_can_be_printed(browser: Any, report: Path, tmp_path: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    page.close()
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 10


def test_long_numbers_stay_on_the_page(browser: Any, fitted: FitResult, tmp_path: Path) -> None:
    """On a phone, bars leave room for numbers of any length."""
    effects = (
        FeatureEffect("area", 67_700_000_000.0, 175_000_000_000.0, "rises with it"),
        FeatureEffect("town", 34_800_000_000.0, 105_000_000_000.0, "highest for Ulm"),
    )
    path = tmp_path / "report.html"
    path.write_text(fit_report(replace(fitted, effects=effects)), encoding="utf-8")
    page = browser.new_page(viewport={"width": PHONE[0], "height": PHONE[1]})
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
