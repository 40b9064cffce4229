"""What a model has been shown since it was made: the batches, in a small file that survives."""

import base64
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from accord._files import write_whole
from accord._types import Bools, Floats
from accord._wording import json_text
from accord.tables import OptionError, quoted
from accord.validation import coverage_log_evidence, coverage_sequence
from accord.workflows.verdict import NEGLIGIBLE

_KIND, _VERSION = "accord monitoring", 1
# 20: a false alarm in at most one stream of twenty, however long it is watched.
ALARM = 20.0


@dataclass(frozen=True)
class MonitoredTable:
    """One table that a model was shown.

    ``content`` is a fingerprint of its rows; ``labelled`` of them had a target, ``misses`` of these
    lay outside their interval. ``drift`` has the columns that were distributed otherwise than in
    training. ``error`` is the mean absolute error, None without targets.
    """

    content: str
    source: str
    time: str
    rows: int
    labelled: int
    misses: int
    unusual: float
    expected_coverage: float
    expected_error: float
    error: float | None
    drift: dict[str, float] = field(default_factory=dict)

    @property
    def covered(self) -> float:
        return 1 - self.misses / self.labelled if self.labelled else float("nan")


@final
@dataclass(frozen=True)
class History:
    """All batches of one model in the order in which they came, and what they say together.

    ``counted`` holds the numbers of the rows that were judged (:func:`accord.tabular.row_hashes`),
    eight bytes each, as base64.
    """

    model: str
    coverage: float
    batches: tuple[MonitoredTable, ...] = ()
    counted: str = ""

    @classmethod
    def read(cls, path: Path, *, model: str, coverage: float) -> Self:
        """The history in a file, or an empty one if there is none yet."""
        if not path.exists():
            return cls(model, coverage)
        shown = quoted(path.name)
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            if state["kind"] != _KIND or state["version"] != _VERSION:
                raise KeyError("kind")
            found = cls(
                str(state["model"]),
                float(state["coverage"]),
                tuple(MonitoredTable(**batch) for batch in state["batches"]),
                str(state["counted"]),
            )
            found.has(np.empty(0, np.uint64))  # fails if the numbers are none
        except (ValueError, KeyError, TypeError):
            raise OptionError(
                f"state must be a file that 'accord monitor' wrote, got {shown}. Give another "
                "name, or remove the file to start again."
            ) from None
        if (found.model, found.coverage) != (model, coverage):
            raise OptionError(
                f"the state {shown} must belong to this model, got that of another one. Give a "
                "state file for each model with --state, or remove it to start again."
            )
        return found

    def write(self, path: Path) -> None:
        """Put the history in place of the old one, in one step."""
        state: dict[str, Any] = {"kind": _KIND, "version": _VERSION, **asdict(self)}
        write_whole(path, json_text(state) + "\n")

    def having(self, batch: MonitoredTable, rows: NDArray[np.uint64] | None = None) -> "History":
        """The history with one more batch, of which these rows were judged."""
        more = b"" if rows is None else rows.astype("<u8").tobytes()
        counted = base64.b64encode(base64.b64decode(self.counted) + more).decode()
        return replace(self, batches=(*self.batches, batch), counted=counted)

    def has(self, rows: NDArray[np.uint64]) -> Bools:
        """Which rows were judged before.

        **Shape**: (n,) → (n,).
        """
        known = np.frombuffer(base64.b64decode(self.counted, validate=True), dtype="<u8")
        return np.isin(rows, known)

    @property
    def judged(self) -> tuple[MonitoredTable, ...]:
        """The batches with targets."""
        return tuple(batch for batch in self.batches if batch.labelled)

    @property
    def rows(self) -> int:
        return sum(batch.labelled for batch in self.batches)

    @property
    def covered(self) -> float:
        missed = sum(batch.misses for batch in self.batches)
        return 1 - missed / self.rows if self.rows else float("nan")

    @cached_property
    def log_evidence(self) -> Floats:
        """log E after each judged batch, against the stated coverage less one percentage point.

        **Shape**: (J,).
        """
        margin = min(NEGLIGIBLE, self.coverage / 2)
        return coverage_log_evidence(*self._counts(), coverage=self.coverage, margin=margin)

    @cached_property
    def intervals(self) -> Floats:
        """Coverages that the batches so far allow, after each judged batch.

        **Shape**: (J, 2).
        """
        return coverage_sequence(*self._counts())

    @property
    def evidence(self) -> float:
        """E now; 1 is no evidence either way."""
        return float(np.exp(min(self.log_evidence[-1], 700.0))) if self.judged else 1.0

    @property
    def broken_by(self) -> MonitoredTable | None:
        """The batch with which the evidence first reached the alarm; once reached, it stays."""
        reached = np.flatnonzero(self.log_evidence >= np.log(ALARM))
        return self.judged[reached[0]] if len(reached) else None

    def _counts(self) -> tuple[Floats, Floats]:
        judged = self.judged
        rows = np.array([batch.labelled for batch in judged], dtype=np.float64)
        return rows, np.array([batch.misses for batch in judged], dtype=np.float64)
