"""What was found in each column of a table, what was done with it, and what to look at."""

from collections import Counter
from dataclasses import dataclass

from accord._wording import count
from accord.tables import ONE_HOT_CATEGORIES, Column
from accord.tabular import TableRegressor
from accord.workflows.leaks import Leaks


@dataclass(frozen=True)
class DescribedColumn:
    """A column of the table: what was found in it, what was done, what to look at.

    ``alone`` is the share of the target's variance that it explains by itself.
    """

    name: str
    used: bool
    found: str
    done: str
    hint: str
    alone: float | None


def described_columns(model: TableRegressor, leaks: Leaks) -> list[DescribedColumn]:
    """What was decided about each column, and why, in words."""
    profile, columns = model.profile_, {column.name: column for column in model.schema_.columns}
    missing = {
        name: round(share * profile.n_rows)
        for name, share in zip(profile.names, profile.missing, strict=True)
    }
    hints = {suspect.column: suspect.sentence for suspect in model.suspects_}
    used = used_shares(model)
    return [
        DescribedColumn(
            name=decision.column,
            used=decision.used and used[decision.column] != 0,
            found=decision.reason,
            done=_done(columns[decision.column], missing[decision.column], used[decision.column])
            if decision.used
            else "not used",
            hint=hints.get(decision.column, ""),
            alone=leaks.alone.get(decision.column),
        )
        for decision in model.training_.decisions
    ]


def used_shares(model: TableRegressor) -> Counter[str]:
    """Of each column's features, the share that the models look at; a plain engine at all."""
    sources = model.preprocessor_.feature_names()
    left_out = set(getattr(model.engine_, "left_out_", ()))
    every = Counter(sources)
    kept = Counter(source for place, source in enumerate(sources) if place not in left_out)
    return Counter({name: kept[name] / n for name, n in every.items()})


def _done(column: Column, missing: int, share: float) -> str:
    if share == 0:
        return "not used: held-out rows are predicted as well without it"
    partly = "" if share == 1 else "; features that held-out rows do not need are left out"
    return f"{_encoding(column, missing)}{partly}"


def _encoding(column: Column, missing: int) -> str:
    gaps = f"; {count(missing, 'gap')}" if missing else ""
    if column.kind == "category":
        n = len(column.categories)
        how = "a feature each" if n <= ONE_HOT_CATEGORIES else "replaced by their mean target"
        return f"{how}{gaps}"
    filled = f"{gaps} filled with the median, and marked" if missing else ""
    if column.kind == "date":
        return f"the moment, and its place in the year, month, week and day{filled}"
    return f"standardised{filled}"
