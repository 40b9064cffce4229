"""Receipts for the predictions of a model that widens with the distance to its training rows."""

from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from accord._checks import check_count, check_probability
from accord._types import Bools, Floats, Indices
from accord._wording import percent
from accord.explanation.receipts import Parts, Receipts
from accord.explanation.shapley import Answer, Columns, shapley_values
from accord.trust import Proximity

# Columns named as unlike: at most so many, each with this share of the distance, where distance is
# this share of the variance.
_NAMED, _WORTH_NAMING, _WORTH_A_WORD = 3, 0.15, 0.01
# A way to narrow an interval by less than this share is none.
_WORTH_DOING = 0.1
# A missing value is filled in from up to so many of the nearest training rows that know it.
_FILLED, _SOUGHT = 10, 100

Gaps = dict[int, dict[int, float]]


class Unknown(NamedTuple):
    """What cells add that say nothing to the model: a new category, or a gap where none was.

    **Shape**: distance (n,), the part of the deviation without them; share (n, c), by column, of
    the variance that they add; a row of zeros where there are none.
    """

    distance: Floats
    share: Floats


class Cells(Protocol):
    """What is known about the cells of the rows that are explained.

    Attributes:
        missing: Cells without a value, (n, c).
        new: Cells that hold what no training row held, however near the row is, (n, c).
    """

    missing: Bools
    new: Bools

    def known(self, column: int) -> Bools:
        """Which reference rows know the column's value, (R,)."""

    def unlike(self, row: int, column: int, near: Indices) -> str:
        """A few words about a cell; ``near`` are places of the row's nearest references."""


def explain(
    answer: Answer,
    proximity: Proximity,
    x: Floats,
    *,
    columns: Columns,
    cells: Cells,
    reference_numbers: Indices,
    coverage: float,
    permutations: int,
    seed: int,
    index: pd.Index | None = None,
    among: Bools | None = None,
    unknown: Unknown | None = None,
) -> Receipts:
    """The receipts of rows with features ``x``.

    ``among`` says which reference rows may be nearest ones, all unless given. What is ``unknown``
    counts as distance, in the columns that it is unknown in.

    The parts, their split by column and the neighbours take about as long as the predictions. With
    ``permutations``, Shapley values and what missing values cost are estimated as well, which takes
    about ``permutations`` × (columns + 1) predictions per row.

    **Shape**: x (n, d); reference_numbers (R,), what the reference rows are called; among (R,).
    """
    check_probability("coverage", coverage, strict=True)
    check_count("permutations", permutations, minimum=0)
    dist, near = answer(x), proximity.neighbors(x, among=among)
    parts = Parts(*(np.asarray(p) for p in (dist.noise, dist.disagreement, dist.distance)))
    by_column = columns.summed(near.by_feature)
    total = by_column.sum(axis=1, keepdims=True)
    share = by_column / np.where(total > 0, total, 1.0)
    distance_by_column = share * np.square(parts.distance)[:, None]
    added = np.zeros_like(share)
    if unknown is not None:
        known = np.minimum(np.square(unknown.distance), np.square(parts.distance))[:, None]
        is_new = unknown.share.any(axis=1, keepdims=True)
        added = (np.square(parts.distance)[:, None] - known) * unknown.share
        distance_by_column = np.where(is_new, share * known + added, distance_by_column)
    by_noise = by_disagreement = None
    gaps: Gaps = {}
    if permutations:
        references = proximity.references()
        by_noise, by_disagreement = shapley_values(
            answer, x, references, columns, permutations=permutations, seed=seed
        )
        gaps = _gaps(answer, proximity, x, references, columns, cells)
    return Receipts(
        names=columns.names,
        coverage=coverage,
        dist=dist,
        mean=np.asarray(dist.mean),
        parts=parts,
        distance_by_column=distance_by_column,
        neighbors=reference_numbers[near.rows],
        unlike=_unlike(parts, share, near.rows, columns, cells),
        narrow=_narrow(parts, gaps, np.where(cells.missing, added, 0.0), columns),
        by_noise=by_noise,
        by_disagreement=by_disagreement,
        index=index,
    )


def _unlike(
    parts: Parts, share: Floats, near: Indices, columns: Columns, cells: Cells
) -> tuple[str, ...]:
    """Cells that are new to the model in any case, the others where distance matters."""
    far = np.square(parts.distance) > _WORTH_A_WORD * np.square(parts.std)
    found = []
    for row, line in enumerate(share):
        named = np.flatnonzero(cells.new[row]).tolist()
        if far[row]:
            order = np.argsort(-line, kind="stable")[:_NAMED]
            named += [place for place in order.tolist() if line[place] >= _WORTH_NAMING]
        words = [
            f"{columns.names[place]} {cells.unlike(row, place, near[row])}"
            for place in dict.fromkeys(named)
        ]
        found.append("; ".join(words))
    return tuple(found)


def _gaps(
    answer: Answer,
    proximity: Proximity,
    x: Floats,
    references: Floats,
    columns: Columns,
    cells: Cells,
) -> Gaps:
    """For each row and column that is missing, the deviation expected once its value is known.

    That is the root of the mean variance over values of the nearest rows that know it: by the law
    of total variance, what is left of the variance in mean.
    """
    found: Gaps = {}
    for row, column in zip(*np.nonzero(cells.missing), strict=True):
        near = proximity.neighbors(x[row : row + 1], _SOUGHT).rows[0]
        near = near[cells.known(int(column))[near]][:_FILLED]
        if len(near):
            filled = np.where(columns.features(int(column)), references[near], x[row])
            left = np.sqrt(np.mean(np.square(answer(filled).std)))
            found.setdefault(int(row), {})[int(column)] = float(left)
    return found


def _narrow(parts: Parts, gaps: Gaps, lacking: Floats, columns: Columns) -> tuple[str, ...]:
    """The best way to a narrower interval, and how much narrower it could get.

    ``lacking`` is the variance that each missing cell is known to add, (n, c): no further row with
    the same gap takes it away.
    """
    std = parts.std
    whole = np.where(std > 0, std, 1.0)
    stays = np.hypot(parts.noise, np.sqrt(lacking.sum(axis=1)))
    known = np.sqrt(np.maximum(np.square(std)[:, None] - lacking, 0.0))
    found = []
    for row, saved_by_rows in enumerate(1 - stays / whole):
        ways = [(float(saved_by_rows), "more training rows like this one: up to {}")]
        left_without = {int(j): float(known[row, j]) for j in np.flatnonzero(lacking[row])}
        for column, left in (left_without | gaps.get(row, {})).items():
            words = f"the missing value of {columns.names[column]}: about {{}}"
            ways.append((1 - left / float(whole[row]), words))
        saved, way = max(ways)
        if saved < _WORTH_DOING:
            found.append("nothing, it is noise in the data")
        else:
            found.append(way.format(f"{percent(saved, 0)} narrower"))
    return tuple(found)
