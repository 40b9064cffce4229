"""What is said about each column of a table."""

import numpy as np

from accord.workflows import FitResult
from accord.workflows.columns import described_columns


def test_every_column_is_described(fitted: FitResult) -> None:
    found = fitted.columns()
    assert [column.name for column in found] == [
        decision.column for decision in fitted.model.training_.decisions
    ]
    for column in found:
        assert column.used == (not column.done.startswith("not used"))


def test_a_column_without_a_use_is_called_so(fitted: FitResult, monkeypatch) -> None:
    """Portfolios leave columns out that held-out rows do not need."""
    sources = np.array(fitted.model.preprocessor_.feature_names())
    whole = next(name for name in sources if (sources == name).sum() == 1)
    part = next(name for name in sources if (sources == name).sum() > 1)
    idle = [*np.flatnonzero(sources == whole), np.flatnonzero(sources == part)[0]]
    monkeypatch.setattr(fitted.model.engine_, "left_out_", np.array(idle))
    described = {one.name: one for one in described_columns(fitted.model, fitted.leaks)}
    assert not described[whole].used
    assert described[whole].done == "not used: held-out rows are predicted as well without it"
    assert described[part].used
    assert described[part].done.endswith("features that held-out rows do not need are left out")
