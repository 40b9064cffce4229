"""Which features belong to which column of the user's table."""

from dataclasses import dataclass

import numpy as np

from accord._types import Bools, Floats, Indices


@dataclass(frozen=True)
class Columns:
    """Names of c columns, and for each of d features the column that it comes from.

    **Shape**: owner (d,).
    """

    names: tuple[str, ...]
    owner: Indices

    @staticmethod
    def of(sources: list[str]) -> "Columns":
        """Columns from the name of each feature's source, in order of appearance.

        >>> Columns.of(["age", "town", "town"]).owner
        array([0, 1, 1])
        """
        names = tuple(dict.fromkeys(sources))
        place = {name: number for number, name in enumerate(names)}
        return Columns(names, np.array([place[source] for source in sources], dtype=np.intp))

    def __len__(self) -> int:
        return len(self.names)

    def features(self, column: int) -> Bools:
        """Which features come from a column, (d,)."""
        return np.asarray(self.owner == column)

    def summed(self, by_feature: Floats) -> Floats:
        """Sums over each column's features.

        **Shape**: (n, d) → (n, c).
        """
        found = np.zeros((len(by_feature), len(self)))
        for feature, column in enumerate(self.owner):
            found[:, column] += by_feature[:, feature]
        return found
