"""The pages themselves: whole, self-contained, and deaf to hostile names."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from accord._wording import number, percent
from accord.paper import reproduce
from accord.plots.style import plain
from accord.report import (
    compare_report,
    evaluate_report,
    fit_report,
    monitor_report,
    reproduction_report,
    validate_report,
)
from accord.report.monitor import number_batches
from accord.workflows import (
    FeatureEffect,
    FitResult,
    Use,
    compare_methods,
    evaluate_table,
    fit_table,
    monitor_table,
    table_model,
    validate_predictions,
)
from accord.workflows.verdict import fit_verdict

VOID = {"meta", "link", "br", "img", "input"}


class Outline(HTMLParser):
    """Tags that are opened and closed in order, and what they hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.seen if tag == name]


@pytest.fixture(scope="module")
def page(fitted: FitResult) -> str:
    return fit_report(fitted)


def test_a_meter_begins_at_no_rows(page: str, fitted: FitResult) -> None:
    dots = [float(place) for place in re.findall(r'class="dot" cx="([\d.]+)%"', page)]
    shares = [fitted.held_out.covered, fitted.shifted.covered]
    np.testing.assert_allclose(dots[:2], [100 * share for share in shares], atol=0.01)


def test_the_fit_report_holds_everything(page: str, fitted: FitResult) -> None:
    outline = Outline(page)
    assert outline.open == []
    text = " ".join(" ".join(outline.text).split()).replace("\N{NO-BREAK SPACE}", " ")
    for part in (
        fitted.verdict.headline,
        fitted.verdict.summary,
        "Can the intervals be believed?",
        "The widest intervals, and why",
        "What would narrow it most:",
        "All 150 held-out rows.",
        "If a column had this value",
        "Residuals",
        "No leak is suspected",
        "Where the uncertainty comes from",
        "The most unusual rows",
        "What the columns do",
        "What was tried",
        "What was done to each column",
        "The same for all rows?",
        "constant ('DE' in every row)",
        "Model card",
        fitted.model.card_.sha256,
        "Each of the 150 rows was predicted by models that had been trained without it",
        "with a linear one",
    ):
        assert part in text


def test_every_figure_has_words(page: str) -> None:
    figures = Outline(page).tags("svg")
    assert len(figures) >= 8
    assert all(svg.get("role") == "img" and svg.get("aria-label") for svg in figures)


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    outline = Outline(page)
    for _, attributes in outline.seen:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name) or "#"
            assert target.startswith(("#", "data:")), target
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    policy = next(m for m in outline.tags("meta") if m.get("http-equiv"))
    assert policy["content"] is not None
    assert "default-src 'none'" in policy["content"]


def test_only_the_page_s_own_script_may_run(page: str) -> None:
    """The policy names it by its hash, as browsers compute it."""
    outline = Outline(page)
    assert outline.tags("script") == [{}]
    source = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    policy = next(m["content"] for m in outline.tags("meta") if m.get("http-equiv"))
    assert policy is not None
    assert policy.endswith(f"; script-src 'sha256-{digest}'")


def test_a_page_stays_small(page: str) -> None:
    assert len(page) < 1_000_000


def test_ids_are_unique(page: str) -> None:
    ids = [a["id"] for _, a in Outline(page).seen if "id" in a]
    assert len(ids) == len(set(ids))


def test_hostile_names_are_text(page: str) -> None:
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>Kiel" not in page


@pytest.mark.parametrize("name", ["$x$", "$\\frac{1}{", "\\", "a\nb", "=SUM(A1)", "%s {} {{7*7}}"])
def test_names_are_neither_formulas_nor_templates(houses: pd.DataFrame, name: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=40), "m": 1.0, "s": 1.0})
    result = validate_predictions(frame, truth=name, mean="m", std="s", rule="within 1")
    assert "49" not in plain("{{7*7}}")
    from accord.report import page as pages

    assert result.found is not None
    svg = pages.intervals(result.found, target=name, wide=False)
    assert svg.startswith('<div class="plot"')
    assert svg.count("<svg") == 1


def test_a_suspected_leak_is_on_the_first_screen(fitted: FitResult) -> None:
    leaks = replace(fitted.leaks, alone={**fitted.leaks.alone, "area": 0.999})
    first = fit_report(replace(fitted, leaks=leaks)).split("<nav")[0]
    assert "Too good to be true?" in first
    assert "Too good to be true?" not in fit_report(fitted)


def test_evaluation_validation_comparison(fitted: FitResult, houses: pd.DataFrame) -> None:
    evaluation = evaluate_report(evaluate_table(fitted.model, houses))
    assert "Have the data drifted? <code>accord monitor</code> says" in evaluation
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"y": rng.normal(size=40), "m": 0.0, "s": 1.0})
    gaussian = validate_predictions(frame, truth="y", mean="m", std="s", rule="within 1")
    bare = validate_predictions(frame, truth="y", mean="m", rule="90% within 2")
    compared = compare_methods(
        houses, target="price", n_splits=1, methods=["MSE ensemble", "Deep ensemble"]
    )
    pages = [
        evaluation,
        validate_report(gaussian),
        validate_report(bare),
        compare_report(compared),
    ]
    for page in pages:
        outline = Outline(page)
        assert outline.open == []
        assert "<script>alert" not in page
        assert all(svg.get("aria-label") for svg in outline.tags("svg"))
    assert "MSE ensemble" in pages[-1]
    assert "Coverage against width" in pages[-1]
    assert "Seconds per fit and NLL on random rows. " in pages[-1]


def test_figures_of_predictions_have_their_unit() -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=40), np.linspace(0.5, 2, 40)
    y = mean + std * rng.normal(size=40)
    frame = pd.DataFrame({"gap [mm]": y, "m": mean, "s": std})
    result = validate_predictions(frame, truth="gap [mm]", mean="m", std="s", rule="within 1")
    page = validate_report(result)
    assert page.count("<small>mm</small>") == 2  # width and RMSE
    assert "root mean squared error of the mean, in mm; lower is better" in page
    assert "Errors and stated deviations" in page
    assert result.belief is not None
    assert result.belief.summary.startswith("Interval width in mm: ")
    same = validate_predictions(
        frame.assign(s=1.0).rename(columns={"gap [mm]": "gap"}),
        truth="gap",
        mean="m",
        std="s",
        rule="within 1",
    )
    page = validate_report(same)
    assert "root mean squared error, in units of gap" in page
    assert "Errors and stated deviations" not in page  # all are stated to be alike


def test_columns_that_are_not_used_move_nothing(fitted: FitResult) -> None:
    unused = next(column.name for column in fitted.columns() if not column.used)
    effects = (*fitted.effects, FeatureEffect(unused, 0.0, 0.0, "no single direction"))
    assert fit_report(replace(fitted, effects=effects)).count("no single direction") == sum(
        effect.direction == "no single direction" for effect in fitted.effects
    )


def test_commands_name_the_file_as_a_shell_reads_it(fitted: FitResult) -> None:
    page = fit_report(fitted, model_file="our <model>.accord")
    for command in ("predict", "evaluate"):
        assert f"accord {command} &#39;our &lt;model&gt;.accord&#39; " in page
    assert "model.accord new" not in page


@pytest.mark.parametrize("count", [1, 4, 40])
def test_batches_are_numbered_from_the_first_one_on(count: int) -> None:
    figure = Figure()
    ax = figure.subplots()
    number_batches(ax, count)
    shown = [place for place in ax.get_xticks() if 0.5 <= place <= count + 0.5]
    assert shown
    assert all(place == round(place) for place in shown)


def test_the_course_of_time(fitted: FitResult, houses: pd.DataFrame, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    hostile = "<script>alert(1)</script>"
    first = houses.assign(area=houses["area"] + 0.05)
    second = first.assign(price=900 - first["price"], **{hostile: first[hostile] + 9})
    waiting = monitor_table(fitted.model, first.drop(columns="price"))
    for frame in (first, second):
        result = monitor_table(fitted.model, frame, state=state)
    pages = [monitor_report(waiting), monitor_report(result)]
    for page in pages:
        outline = Outline(page)
        assert outline.open == []
        assert "<script" not in page
        assert all(svg.get("aria-label") for svg in outline.tags("svg"))
    assert "Which targets to find out first" in pages[0]
    assert "Does coverage still hold?" not in pages[0]
    assert "Drift by column, over time" in pages[1]
    assert "Coverage over 2 batches" in pages[1]


def test_a_small_table_has_a_report(houses: pd.DataFrame) -> None:
    """Also one whose target is a column too, and that has a unit."""
    frame = houses.iloc[:20].assign(copy=houses["price"]).rename(columns={"price": "price [k€]"})
    small = fit_table(table_model(effort="quick"), frame, "price [k€]")
    page = fit_report(small)
    assert "20 rows are few" in page
    assert "<small>k€</small>" in page
    assert small.leaks.suspected[-1] == "copy"
    assert page.count("Is it known before the target is?") >= 3  # at the top, columns, notes


def test_infinite_intervals_can_be_drawn(fitted: FitResult) -> None:
    from accord.report import page as pages
    from accord.report.fit import dependence_figures, level_panel

    endless = replace(fitted.held_out, upper=np.full(len(fitted.held_out), np.inf))
    assert "nan" not in pages.intervals(endless, target="price", wide=True).lower()
    usual, unusual = fitted.curves
    last = np.where(usual.stated == 0.99, np.inf, usual.width)
    curves = tuple(
        replace(one, upper=np.full(len(one.at), np.inf)) for one in fitted.dependence[:1]
    )
    result = replace(fitted, curves=(replace(usual, width=last), unusual), dependence=curves)
    panel = level_panel(result)
    assert "NaN" not in json.dumps(panel)
    assert panel["levels"]["groups"][0]["width"][-1] == "∞"
    assert panel["levels"]["groups"][0]["places"]["width"][-1] == 100
    assert "nan" not in dependence_figures(result)[0][1].lower()


def test_a_reproductions_page_holds_claims_tables_and_figures(tmp_path: Path) -> None:
    result = reproduce(["expansion"], folder=tmp_path, jobs=1)
    outline = Outline(reproduction_report(result))
    assert outline.open == []
    text = " ".join(" ".join(outline.text).split()).replace("\N{NO-BREAK SPACE}", " ")
    for verdict in result.claims:
        assert f"{verdict.where} {verdict.claim}" in text
        assert verdict.evidence in text
    for table in result.tables:
        assert table.title in text
        assert all(words[0] in text for words, _ in table.cells())
    assert "does not hold" in text
    assert all(svg.get("aria-label") for svg in outline.tags("svg"))
    assert len(outline.tags("svg")) == sum(len(part.figures) for part in result.parts) > 0


def test_a_page_says_reliable_and_useful_or_not(fitted: FitResult) -> None:
    assert "Reliable and useful" in fit_report(fitted)
    use = Use(300.0, 300.0, 250.0, 200.0)
    verdict = fit_verdict(fitted.held_out, fitted.shifted, use, target="price")
    useless = fit_report(replace(fitted, use=use, verdict=verdict))
    assert "Of no use: no narrower than without a model" in useless
    assert "Reliable" not in useless


def test_a_heavy_tail_does_not_hide_the_rest(fitted: FitResult) -> None:
    from accord.report import page as pages

    y = fitted.held_out.y.copy()
    y[np.argsort(fitted.held_out.mean)[0]] = 1e9
    svg = pages.intervals(replace(fitted.held_out, y=y), target="price", wide=True)
    assert "1 observed value lies beyond this axis" in svg
    ticks = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert ticks
    assert not any("000,000" in tick for tick in ticks)


def test_magnitudes_get_a_logarithmic_axis(fitted: FitResult) -> None:
    from accord.report import page as pages

    found = fitted.held_out
    skewed = np.exp(np.linspace(0, 12, len(found)))
    tall = replace(found, y=skewed, mean=skewed, lower=skewed / 2, upper=2 * skewed)
    svg = pages.intervals(tall, target="price", wide=True)
    assert "observed 1.00, predicted 1.00" in svg  # small ones are not rounded to 0
    assert "price, logarithmic" in svg
    assert "100,000" in svg
    assert "logarithmic" not in pages.intervals(found, target="price", wide=True)


def test_bars_of_effects_share_one_scale(fitted: FitResult) -> None:
    effects = (
        FeatureEffect("area", 30.9, 61.8, "rises with it"),
        FeatureEffect("town", 25.1, 1.0, "highest for Ulm"),
    )
    page = fit_report(replace(fitted, effects=effects))
    widths = [float(width) for width in re.findall(r"--w: ([\d.]+)\"\s+aria-label", page)]
    assert widths == [0.5, 1.0, 0.406, 0.016]
    assert "highest for Ulm" in page


def test_the_slider_has_what_it_shows(page: str, fitted: FitResult) -> None:
    panel = next(a for _, a in Outline(page).seen if "data-levels" in a)
    levels = json.loads(panel["data-levels"] or "")
    assert levels["stated"][0] == "50 %"
    assert levels["stated"][-1] == "99 %"
    at = levels["stated"].index("95 %")
    held_out, unusual = levels["groups"]
    assert held_out["rows"] == "150 held-out rows"
    assert held_out["covered"][at] == percent(fitted.held_out.covered)
    assert held_out["width"][at] == number(fitted.use.mean_width)
    assert held_out["without"][at] == number(fitted.use.without_model)
    assert unusual["covered"][at] == percent(fitted.shifted.covered)


def test_points_lie_where_they_are_drawn(page: str, fitted: FitResult) -> None:
    """In order from left to right, higher values higher up, each with its row's values."""
    plot = next(a for _, a in Outline(page).seen if "data-points" in a)
    points = json.loads(plot["data-points"] or "")
    assert np.all(np.diff([point["x"] for point in points]) > 0)
    found = fitted.held_out
    order = np.argsort(found.mean, kind="stable")
    assert points[0]["text"][0] == f"Row {found.rows[order[0]]}"
    assert points[0]["text"][1].startswith(f"observed {found.y[order[0]]:.1f}, predicted")
    down = np.array([point["y"] for point in points])
    np.testing.assert_allclose(np.corrcoef(down, found.y[order])[0, 1], -1, atol=1e-4)


def test_figures_of_merit_are_those_of_the_catalogue(page: str, fitted: FitResult) -> None:
    from accord.metrics import METRICS

    shown = set(fitted.held_out.figures())
    assert shown <= set(METRICS)
    for name in shown:
        assert f"<td>{METRICS[name].title}<br>" in page


def test_a_table_of_hardly_any_rows_has_no_part_on_unusual_ones() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=30)})
    result = fit_table(table_model(effort="quick"), frame.assign(y=2 * frame["a"]), "y")
    page = fit_report(result)
    assert not len(result.shifted)
    assert "had seen no rows like them" not in page + result.verdict.summary
    assert 'id="unusual"' not in page
    assert "#unusual" not in page
    assert not re.search(r"\bnan\b", " ".join(Outline(page).text))
