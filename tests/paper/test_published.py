"""The printed figures, pinned where the paper states them in its text."""

import pytest

from accord.datasets import info
from accord.paper.published import Figure, datasets, figure, is_grey, printed


def test_figures_that_the_text_repeats() -> None:
    assert figure("table1", "energy", "nll", "BVM") == Figure(1.67, 0.13, 2)
    assert figure("table1", "energy", "nll", "Deep Ensembles") == Figure(1.38, 0.22, 2)
    assert figure("table2", "google", "nll", "BVM eps=0.1") == Figure(5.13, None, 2, single=True)
    assert figure("calibration", "energy", "ece", "BVM") == Figure(0.0142, None, 4)


def test_shifts_have_no_method() -> None:
    assert figure("table3", "yacht", "mean_shift") == Figure(0.26, None, 2, single=True)


def test_what_is_not_printed_is_none() -> None:
    assert figure("table3", "boston", "nll", "PBP") is None
    assert figure("table1", "google", "nll", "BVM") is None
    with pytest.raises(KeyError, match="table3 prints no nll of PBP on boston"):
        printed("table3", "boston", "nll", "PBP")


@pytest.mark.parametrize("table", ["table1", "table3", "calibration"])
def test_rows_are_the_nine_sets(table: str) -> None:
    rows = datasets(table)  # type: ignore[arg-type]
    assert len(rows) == 9
    assert all(info(name).name == name for name in rows)


def test_grey_rows() -> None:
    white = {name for name in datasets("table3") if not is_grey(name)}
    assert white == {"naval", "power", "protein"}
