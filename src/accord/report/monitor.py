"""The report on a model in use: its coverage over time."""

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from accord._wording import percent
from accord.plots import style
from accord.report.page import draw, render
from accord.workflows import ALARM, History, MonitoredTable, MonitorResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN_COLUMNS = 15
_SHOWN_BATCHES = 30
# So many batches are numbered one by one.
_EACH_BATCH = 10
# Batches whose drift stands side by side.
_SIDE_BY_SIDE = 8


def monitor_report(result: MonitorResult) -> str:
    """A page on a model's coverage, from :func:`accord.workflows.monitor_table`."""
    history = result.history
    recent = history.batches[-_SIDE_BY_SIDE:]
    return render(
        "monitor.html",
        card=result.card,
        source=result.source,
        verdict=result.verdict,
        history=history,
        batch=result.batch,
        expected=result.expected,
        alarm=ALARM,
        drift=result.drift,
        shifted=sorted(result.drift.columns, key=lambda c: -c.distance)[:_SHOWN_COLUMNS],
        recent=recent,
        moved=_moved(recent),
        batches=history.batches[: -_SHOWN_BATCHES - 1 : -1],
        coverage=_coverage(history) if history.judged else None,
        evidence=_evidence(history) if history.judged else None,
        label_first=result.label_first[:_SHOWN_COLUMNS],
        warnings=result.warnings,
    )


def _moved(batches: tuple[MonitoredTable, ...]) -> list[tuple[str, list[float | None]]]:
    """Columns that drifted in any of the batches, with their distance in each."""
    names = {name for batch in batches for name in batch.drift}
    found = [(name, [batch.drift.get(name) for batch in batches]) for name in names]
    found.sort(key=lambda line: (-max(d or 0.0 for d in line[1]), line[0]))
    return found[:_SHOWN_COLUMNS]


def _coverage(history: History) -> Markup:
    """Coverage of each batch, and the confidence range of all so far."""
    low, high = history.intervals.T
    covered = np.array([batch.covered for batch in history.judged])
    place = np.arange(1, len(covered) + 1)

    def paint(ax: "Axes") -> None:
        ax.fill_between(
            place,
            low,
            high,
            color=style.SKY,
            alpha=0.35,
            lw=0,
            label="confidence range, all rows so far",
        )
        ax.vlines(place[-1], low[-1], high[-1], color=style.SKY, lw=3)
        ax.plot(place, covered, color=style.BLUE, lw=0, marker="o", ms=4.5, label="batch by itself")
        ax.axhline(
            history.coverage, color=style.ink(ax), alpha=0.7, lw=1.1, ls=style.DASHED,
            label="stated",
        )  # fmt: skip
        bottom = min(float(covered.min()), float(low[-1]), history.coverage - 0.1)
        ax.set(ylim=(max(0.0, bottom - 0.03), 1.02))
        ax.set_ylabel("inside the interval")
        number_batches(ax, len(covered))
        style.percent_axis(ax.yaxis)
        style.legend_below(ax, columns=2)

    alt = (
        f"Coverage over {len(covered)} batches: {percent(history.covered)} of all rows lie in "
        f"their interval, {percent(history.coverage)} is stated; the confidence range is "
        f"{percent(low[-1])} to {percent(high[-1])}."
    )
    return draw(paint, alt=alt, height=4.2)


def _evidence(history: History) -> Markup:
    """Evidence that coverage has fallen, after each batch, beside the alarm."""
    values = np.exp(np.clip(history.log_evidence, -600.0, 600.0))
    place = np.arange(1, len(values) + 1)

    def paint(ax: "Axes") -> None:
        ax.set_yscale("log")
        ax.plot(place, values, color=style.BLUE, marker="o", ms=4, lw=1.4, label="evidence")
        ax.axhline(ALARM, color=style.VERMILLION, lw=1.4, ls=style.DASHED, label="alarm")
        ax.set(ylim=(min(0.1, values.min() / 2), max(2 * ALARM, 2 * values.max())))
        ax.set_ylabel("evidence, logarithmic")
        style.plain_log_axis(ax.yaxis)
        number_batches(ax, len(values))
        style.legend_below(ax, columns=2)

    return draw(paint, alt=f"Evidence after each batch; {ALARM:g} is the alarm.", height=3.8)


def number_batches(ax: "Axes", count: int) -> None:
    """Batches on the x-axis, with room for one alone."""
    from matplotlib.ticker import MaxNLocator

    ax.set(xlim=(0.5, count + 0.5), xlabel="batch with targets, in order")
    if count <= _EACH_BATCH:
        ax.set_xticks(range(1, count + 1))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
