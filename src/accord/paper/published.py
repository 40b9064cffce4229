"""The paper's printed figures, as data beside the code that is compared with them."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

PrintedTable = Literal["table1", "table2", "table3", "calibration"]


@dataclass(frozen=True)
class Figure:
    """A printed number: its value, its standard error where one is printed, and its decimals.

    ``single`` marks the outcome of one run, whose spread the paper does not say.
    """

    value: float
    error: float | None
    decimals: int
    single: bool = False

    @property
    def rounding(self) -> float:
        """Standard deviation of what printing has rounded off, uniform in half a last digit."""
        return float(10.0**-self.decimals / 12**0.5)


def figure(
    table: PrintedTable, dataset: str, measure: str, method: str | None = None
) -> Figure | None:
    """What was published, or None where the paper prints nothing.

    Args:
        table: Which table.
        dataset: Name of the dataset, as in :func:`accord.datasets.names`.
        measure: ``"rmse"``, ``"nll"``, ``"ece"``, ``"mce"``, ``"mean_shift"`` or
            ``"variance_shift"``.
        method: The column's heading in the paper; None for the shifts, which have none.

    Example:
        >>> figure("table1", "boston", "nll", "BVM")
        Figure(value=2.52, error=0.08, decimals=2, single=False)
    """
    entry = _printed()[table].get(dataset, {}).get(measure)
    if method is not None:
        entry = (entry or {}).get(method)
    if entry is None:
        return None
    decimals = 4 if table == "calibration" else 2
    if isinstance(entry, list):
        return Figure(float(entry[0]), float(entry[1]), decimals)
    return Figure(float(entry), None, decimals, single=table in ("table2", "table3"))


def printed(table: PrintedTable, dataset: str, measure: str, method: str) -> Figure:
    """:func:`figure` where there is one; ``KeyError`` where the paper prints nothing."""
    found = figure(table, dataset, measure, method)
    if found is None:
        raise KeyError(f"{table} prints no {measure} of {method} on {dataset}.")
    return found


def datasets(table: PrintedTable) -> list[str]:
    """The table's rows."""
    return list(_printed()[table])


def is_grey(dataset: str) -> bool:
    """Whether Table 3 shades the row: a large shift between training and test targets."""
    return bool(_printed()["table3"][dataset]["grey"])


@cache
def _printed() -> dict[str, Any]:
    text = files("accord.paper").joinpath("published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
