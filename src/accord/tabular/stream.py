"""All rows of a file, a sample of which is in memory: encoded as that was, shuffled, on disk."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from accord._code import code_digest
from accord._progress import Progress
from accord._types import Floats, Indices
from accord._wording import byte_size
from accord.portfolio import MoreRows, record_type
from accord.splits import row_hashes
from accord.tables import (
    FurtherTraining,
    Records,
    ShuffledRows,
    Suspect,
    Table,
    TableEncoder,
    TableError,
    TrainingData,
    check_present,
    part_count,
    prepare_training,
    read_again,
    sample_note,
    suspects,
    with_gaps,
)
from accord.tabular.engines import tolerance_for
from accord.tabular.rows import (
    Rows,
    held_together,
    order_of,
    with_note_on_groups,
    with_roles,
)
from accord.work import Checkpoint, digest

_SEED = 0
# Room that must be left on the disk.
_SPARE_BYTES = 1 << 30
Keys = NDArray[Any]
KeysOf = Callable[[Table, TrainingData], Keys]


@final
@dataclass(frozen=True)
class SampledTable:
    """A table, or a sample of one, with all that was decided on it: how to read the rest.

    ``roles`` are the columns of the target and of what is known of it. Of each row, where there is
    one: its ``tolerance``, the number of the rows that are held out ``together`` with it, and its
    moment in time. ``passes`` is how often the whole file is to be trained on; if not at all, the
    table may be without its cells. ``watch`` is the encoder's.
    """

    table: Table
    data: TrainingData
    roles: dict[str, str]
    tolerance: Floats | None = None
    together: Indices | None = None
    moments: Floats | None = None
    group: str | None = None
    time: str | None = None
    passes: int = 0
    watch: bool = False

    @classmethod
    def read(
        cls,
        X: Rows,
        given: dict[str, Any],
        *,
        tolerance: float | str = "choose",
        group: str | None,
        time: str | None,
        ignore: Sequence[str],
        use: Sequence[str],
        category: Sequence[str],
        max_rows: int | None = None,
        passes: int = 0,
        watch: bool = False,
    ) -> Self:
        """Read rows, with what is ``given`` of each (values, or names of columns).

        The other arguments are those of :class:`accord.TableRegressor`.
        """
        table, roles = with_roles(X, given, max_rows=max_rows)
        named = [("group", group), ("time", time)]
        check_present(named, table.data.column_names, source=table.name)
        data = prepare_training(
            table,
            **roles,
            ignore=list(dict.fromkeys([*ignore, *([] if group is None else [group])])),
            use=use,
            category=category,
        )
        data = with_note_on_groups(table, data, group)
        passes = 0 if table.origin is None else passes
        return cls(
            table if passes else table.without_cells(),
            data,
            roles,
            tolerance=tolerance_for(tolerance, data),
            together=held_together(table, data, group=group, time=time),
            moments=order_of(table, data, time),
            group=group,
            time=time,
            passes=passes,
            watch=watch,
        )

    @property
    def encoder(self) -> TableEncoder:
        """What makes features of the rows."""
        return self._encoded[0]

    @property
    def features(self) -> Floats:
        """The features of the rows, (N, features)."""
        return self._encoded[1]

    @cached_property
    def _encoded(self) -> tuple[TableEncoder, Floats]:
        """Made when it is asked for, so that whoever read the table can forget its cells before."""
        encoder = TableEncoder(self.data.schema, watch=self.watch, random_state=0)
        return encoder, encoder.fit_transform(self.data.X, self.data.y)

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Columns that look like a group or a time, and were not named as that."""
        found = suspects(self.data.X, self.data.schema)
        return tuple(each for each in found if each.column not in {self.group, self.time})

    @property
    def key(self) -> str:
        """What tells the rows, and how they are encoded, from all others."""
        data = self.data
        return digest(
            code_digest(),
            self.table.sha256,
            self.features,
            data.y,
            data.rows,
            data.schema.to_dict(),
            self.roles,
            self.tolerance,
            self.group,
            self.time,
        )


@contextmanager
def all_rows(
    sample: SampledTable, kept: Checkpoint | None, progress: Progress
) -> Iterator[tuple[MoreRows | None, tuple[str, ...]]]:
    """All rows of the sample's file in a random order, None where there is no need; and notes.

    The notes are those of the sample, but for the one that only a sample is used.
    They are on disk, in the folder of what is kept, or else in one for temporary files, until the
    work with them is done; in what is kept they stay if it is stopped.
    """
    origin, notes = sample.table.origin, sample.data.notes
    if not sample.passes or origin is None:
        yield None, notes
        return
    key = sample.key
    with tempfile.TemporaryDirectory() as elsewhere:
        folder = Path(elsewhere) / "rows" if kept is None else kept.place(key)
        records = _Recorder(sample)
        rows = ShuffledRows(folder, records.dtype, part_count(origin.n_rows, records.dtype))
        if not rows.is_whole:
            needed = origin.n_rows * records.dtype.itemsize
            if note := _no_room(folder, needed):
                yield None, (*notes, note)
                return
            rows.write(_blocks(sample, records, progress), seed=_SEED)
            notes = (*notes, *records.notes)
        said = sample_note(origin.n_rows, sample.table.numbers)
        more = MoreRows(rows, rows.n_rows, key, sample.passes)
        yield more, tuple(note for note in notes if note not in said)
        shutil.rmtree(folder, ignore_errors=True)


def _no_room(folder: Path, needed: int) -> str:
    """A sentence if a shuffled copy does not fit on the disk, else nothing."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    if shutil.disk_usage(place).free >= needed + _SPARE_BYTES:
        return ""
    return (
        f"Networks were trained on the sample alone: a shuffled copy of all rows takes "
        f"{byte_size(needed)}, for which there is no room in {place}."
    )


def _blocks(
    sample: SampledTable, records: "_Recorder", progress: Progress
) -> Iterator[tuple[NDArray[np.int64], Records]]:
    origin = sample.table.origin
    assert origin is not None, "all_rows has looked"
    try:
        with read_again(sample.table, columns=records.columns) as batches:
            for batch in batches:
                numbers, own = records(batch)
                yield numbers, own
                assert batch.numbers is not None, "it was read again"
                progress(float(batch.numbers[-1]) / origin.n_rows, "Reading")
    except TableError as error:
        raise TableError(
            f"{error} The sample has no such cells: to train on it alone, pass passes=0 "
            "(--passes 0)."
        ) from error


class _Recorder:
    """Turns batches of the file into records, encoded as the sample."""

    def __init__(self, sample: SampledTable) -> None:
        self._read = FurtherTraining(sample.table, sample.data, sample.roles)
        self._sample, self._held_out = sample, _HeldOutGroups(sample)
        known = {role for role in sample.roles if role != "target"}
        known |= {"lower", "upper"} if known & {"lower", "upper"} else set()
        known |= set() if sample.tolerance is None else {"tolerance"}
        self.dtype = record_type(sample.features.shape[1], known)
        named = {name for name in (sample.group, sample.time) if name is not None}
        self.columns = [*dict.fromkeys([*self._read.columns, *sorted(named)])]

    @property
    def notes(self) -> list[str]:
        return self._read.notes

    def __call__(self, batch: Table) -> tuple[NDArray[np.int64], Records]:
        data = self._read(batch)
        records = np.empty(len(data.y), self.dtype)
        records["x"] = self._sample.encoder.transform(data.X)
        records["y"], records["like"] = data.y, self._held_out(batch, data)
        tolerance = data.tolerance
        if tolerance is None and self._sample.tolerance is not None:
            tolerance = np.full(len(data.y), self._sample.tolerance[0])  # one for all rows
        known = {"weight": data.weight, "tolerance": tolerance}
        for name, bound in (("lower", data.lower), ("upper", data.upper)):
            known[name] = None if bound is None else np.where(np.isnan(bound), data.y, bound)
        for name, values in known.items():
            if values is not None:
                records[name] = values
        return data.rows, records


class _HeldOutGroups:
    """Which row of the sample each row is held out with, −1 for none.

    That is the row itself; else one of its group, the nearest in time, or else a copy, unless rows
    of the sample are alike only because their values are few.
    """

    def __init__(self, sample: SampledTable) -> None:
        self._rows, self._time = sample.data.rows, sample.time
        self._keys_of = _keys_of(sample)
        if self._keys_of is not None:
            keys = self._keys_of(sample.table, sample.data)
            self._order = np.argsort(keys, kind="stable")
            self._keys = keys[self._order]

    def __call__(self, batch: Table, data: TrainingData) -> Indices:
        place = np.searchsorted(self._rows, data.rows).clip(max=len(self._rows) - 1)
        like = np.where(self._rows[place] == data.rows, place, -1)
        if self._keys_of is None:
            return like
        keys = self._keys_of(batch, data)
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        known = np.ones(len(keys), bool)
        if self._time is None:
            known = self._keys[place] == keys
        else:
            before = np.maximum(place - 1, 0)
            nearer = np.abs(keys - self._keys[before]) < np.abs(keys - self._keys[place])
            place = np.where(nearer, before, place)
        return np.where((like < 0) & known, self._order[place], like)


def _keys_of(sample: SampledTable) -> KeysOf | None:
    group, time = sample.group, sample.time
    if time is not None:
        return lambda table, data: np.asarray(order_of(table, data, time, sample=sample.table))
    if group is not None:
        return lambda table, data: _group_keys(table, data, group)
    hashes = row_hashes(sample.data.X, sample.data.y)
    if sample.together is not None and len(np.unique(sample.together)) > len(np.unique(hashes)):
        return None
    return lambda table, data: row_hashes(data.X, data.y)


def _group_keys(table: Table, data: TrainingData, group: str) -> Keys:
    """A hash of the group of each row; one without a group has that of its own number."""
    column = with_gaps(table.data.column(group).take(pa.array(data.places)))
    names = pc.cast(column, pa.string()).to_pandas()
    hashes = np.asarray(pd.util.hash_array(names.to_numpy(dtype=object)))
    return np.where(names.isna(), np.uint64(2**63) + data.rows.astype(np.uint64), hashes)
