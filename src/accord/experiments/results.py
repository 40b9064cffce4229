"""The records of a reproduction, by question."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from accord.experiments.estimates import Estimate, jackknife, paired_difference
from accord.experiments.measures import LEVELS
from accord.experiments.plan import Stack, cells_of
from accord.experiments.records import Record, RecordStore

__all__ = ["Results"]

Place = tuple[str, str, str, str]  # study, dataset, method, variant


class Results:
    """Records grouped by study, dataset, method and variant, their splits in order."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = sorted(records, key=lambda record: record.split)
        self._by_place: dict[Place, dict[int, Record]] = {}
        for record in self.records:
            place = (record.study, record.dataset, record.method, record.variant)
            self._by_place.setdefault(place, {})[record.split] = record

    @classmethod
    def of(cls, stacks: Iterable[Stack], store: RecordStore) -> "Results":
        """The records of these stacks, and of no other settings, as far as they exist."""
        found = (store.get(cell) for stack in stacks for _, _, cell in cells_of(stack))
        return cls(record for record in found if record is not None)

    def at(self, study: str, dataset: str, method: str, variant: str) -> Sequence[Record]:
        """The records of all splits; none if they are not there."""
        return list(self._by_place.get((study, dataset, method, variant), {}).values())

    def estimate(
        self, study: str, dataset: str, method: str, variant: str, measure: str
    ) -> Estimate | None:
        """Mean over the splits; the calibration errors ``ece`` and ``mce`` of the mean curve."""
        records = self.at(study, dataset, method, variant)
        if not records:
            return None
        if measure in ("ece", "mce"):
            errors = self.reliability(study, dataset, method, variant) - np.array(LEVELS)
            return jackknife(errors, "mean" if measure == "ece" else "max")
        return Estimate.over([record.measures[measure] for record in records])

    def difference(
        self, study: str, dataset: str, ours: tuple[str, str], theirs: tuple[str, str], measure: str
    ) -> Estimate | None:
        """Mean of ours − theirs, each a method and variant, over the splits that both have."""
        one = self._by_place.get((study, dataset, *ours), {})
        two = self._by_place.get((study, dataset, *theirs), {})
        both = sorted(one.keys() & two.keys())
        if not both:
            return None
        return paired_difference(
            [one[split].measures[measure] for split in both],
            [two[split].measures[measure] for split in both],
        )

    def reliability(
        self, study: str, dataset: str, method: str, variant: str
    ) -> NDArray[np.float64]:
        """Observed fractions at the nine levels; **Shape** (n_splits, 9)."""
        records = self.at(study, dataset, method, variant)
        return np.array([record.curves["observed"] for record in records], dtype=np.float64)

    def networks(self, study: str) -> int:
        """Networks trained for a study's own records."""
        return sum(record.networks for record in self.records if record.study == study)

    def seconds(self, study: str) -> float:
        """Time of one core spent on a study's own records, in this run and earlier ones."""
        return sum(record.seconds for record in self.records if record.study == study)
