"""Receipts for tables: by the columns that people know, whatever the models see of them."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pandas as pd

from accord._types import Bools, Floats, Indices
from accord.distributions import Distribution
from accord.portfolio import Blanks, HeldOut
from accord.tables import TableEncoder
from accord.tabular.card import TableProfile
from accord.trust import (
    Columns,
    Proximity,
    Receipts,
    Unknown,
    explain,
    four_digits,
    rounded,
    unlike_category,
    unlike_gap,
    unlike_number,
)

_DIFFERS = "differs from the nearest training rows"


class KnowsDistances(Protocol):
    """A model that widens predictions away from its data, and for what is not known."""

    @property
    def proximity_(self) -> Proximity: ...
    @property
    def blanks_(self) -> Blanks: ...


class OfTables(Protocol):
    """A fitted model of tables."""

    coverage: float

    @property
    def encoder_(self) -> TableEncoder: ...
    @property
    def profile_(self) -> TableProfile: ...
    @property
    def reference_rows_(self) -> Indices: ...


def table_receipts(
    model: OfTables,
    engine: KnowsDistances,
    X: pd.DataFrame,
    *,
    answer: Callable[[Floats], Distribution],
    as_known: Callable[[Floats], Distribution] | None,
    coverage: float | None = None,
    permutations: int = 0,
    seed: int = 0,
    among: Bools | None = None,
) -> Receipts:
    """Receipts of rows that have the schema's columns and types already.

    ``answer`` predicts rows by their features; without ``permutations`` it is only asked about
    those of ``X``. ``as_known`` predicts them without what blanks add, None where these add
    nothing. ``among`` says which reference rows may be the nearest, all unless given.
    """
    x = model.encoder_.transform(X)
    columns = Columns.of(model.encoder_.feature_names())
    return explain(
        answer,
        engine.proximity_,
        x,
        columns=columns,
        cells=_Cells(model, engine.proximity_, X, x, columns),
        reference_numbers=model.reference_rows_,
        coverage=model.coverage if coverage is None else coverage,
        permutations=permutations,
        seed=seed,
        index=X.index,
        among=among,
        unknown=None if as_known is None else _unknown(as_known, engine.blanks_, x, columns),
    )


def _unknown(
    as_known: Callable[[Floats], Distribution], blanks: Blanks, x: Floats, columns: Columns
) -> Unknown | None:
    """What cells add that say nothing, None if there are none."""
    by_blank = blanks.shares(x)
    if not by_blank.any():
        return None
    share = np.zeros((len(x), len(columns)))
    for features, values in zip(blanks.features, by_blank.T, strict=True):
        share[:, columns.owner[features[0]]] += values
    return Unknown(np.asarray(as_known(x).distance), share)


def held_out_receipts(
    model: OfTables, engine: KnowsDistances, X: pd.DataFrame, *, held_out: HeldOut, lines: Indices
) -> Receipts:
    """Receipts of training rows, as predicted by models that had not seen them.

    The nearest rows are sought among those that the models had seen; the distance by column is
    from them.

    **Shape**: X (N, columns), all training rows; lines (n,), places among those held out.
    """
    dist = held_out.dist[lines]
    return table_receipts(
        model,
        engine,
        X.iloc[held_out.rows[lines]],
        answer=lambda _: dist,
        as_known=None,
        among=~np.isin(engine.proximity_.reference_rows_, held_out.rows),
    )


class _Cells:
    """Numbers, dates, categories and gaps, each beside those of the training rows."""

    def __init__(
        self, model: OfTables, proximity: Proximity, X: pd.DataFrame, x: Floats, columns: Columns
    ) -> None:
        encoder = model.encoder_
        self.profile, self.columns, self.x = model.profile_, columns, x
        self.cells = X[list(columns.names)]
        self.missing: Bools = self.cells.isna().to_numpy()
        self.known_as = {column.name: column for column in encoder.schema.columns}
        self.seen = {c.name: set(c.categories) for c in encoder.schema.columns}
        self.new = self._new()
        self.references = proximity.references()
        self.sampled = len(self.references) < self.profile.n_rows
        self.limits = {column.name: column.limits for column in encoder.schema.columns}
        self.measured, self.labels = encoder.measured(), encoder.feature_labels()
        self.dates = {str(name) for name, kind in self.cells.dtypes.items() if kind.kind == "M"}
        self.training: dict[str, tuple[Floats, Floats]] = {}

    def _new(self) -> Bools:
        """Gaps and categories that no training row had, and others than the only value of these."""
        new = np.zeros(self.cells.shape, bool)
        for place, name in enumerate(self.columns.names):
            if self.profile.missing[self.profile.names.index(name)] == 0:
                new[:, place] = self.missing[:, place]
            if name in self.profile.shares:
                seen = self.cells[name].astype(str).isin(self.seen[name]).to_numpy()
                new[:, place] |= ~seen & ~self.missing[:, place]
            elif self.known_as[name].watched:
                new[:, place] |= self.known_as[name].others(self.cells[name].to_numpy())
        return new

    def known(self, column: int) -> Bools:
        """Which reference rows know the column's value, by the feature that says they do not."""
        label = f"{self.columns.names[column]} is missing"
        if label not in self.labels:
            return np.ones(len(self.references), bool)
        says = self.references[:, self.labels.index(label)]
        # a feature that was left out is the same for all of them, and says nothing against any
        return np.asarray(says <= (says.min() + says.max()) / 2)

    def unlike(self, row: int, column: int, near: Indices) -> str:
        name = self.columns.names[column]
        place = self.profile.names.index(name)
        if self.missing[row, column]:
            return unlike_gap(float(self.profile.missing[place]), self.profile.n_rows)
        if name in self.profile.shares:
            shares = self.profile.shares[name]
            category = str(self.cells.iat[row, column])
            rare = None if category in self.seen[name] else 0.0
            return unlike_category(category, shares.get(category, rare), self.profile.n_rows)
        if self.new[row, column]:
            number: Any = self.cells.iat[row, column]
            return unlike_category(f"{number:.10g}", 0.0, self.profile.n_rows)
        if name not in self.measured:
            return _DIFFERS
        feature, centre, scale = self.measured[name]
        training, ordered = self._training(name, column)
        if np.ptp(training) == 0:  # the number was left out; of a date, its season may not be
            return _DIFFERS
        value = float(rounded(centre + scale * self.x[row, feature]))
        low, high = rounded(np.array(self.limits[name]))
        # values beyond count as lying just there, and are not known any more
        beyond = " or less" if value <= low else " or more" if value >= high else ""
        show = _date if name in self.dates else four_digits
        return unlike_number(
            value, ordered, training[near], sampled=self.sampled, show=show, beyond=beyond
        )

    def _training(self, name: str, column: int) -> tuple[Floats, Floats]:
        """Values of the reference rows, and those that are known in ascending order."""
        if name not in self.training:
            feature, centre, scale = self.measured[name]
            values = rounded(centre + scale * self.references[:, feature])
            self.training[name] = values, np.sort(values[self.known(column)])
        return self.training[name]


def _date(seconds: float) -> str:
    # rounding to 9 digits may have moved midnight by a second
    return str(pd.Timestamp(seconds, unit="s").round("min").date())
