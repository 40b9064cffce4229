"""What a study is: data, methods with all their settings, splits. Plain values, no code to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from accord.datasets import info

__all__ = ["LARGE", "Model", "Reading", "Scheme", "Shared", "Study"]

LARGE = 5_000  # rows
Settings = Mapping[str, Any]
Scheme = Literal["standard", "outlier", "holdout", "toy", "formula"]


@dataclass(frozen=True)
class Reading:
    """How trained networks are turned into a predictive distribution.

    ``settings`` are parameters that matter only when predicting, so one training serves several
    readings.
    """

    variant: str
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A method with its settings: an estimator of :mod:`accord.estimators`, trained once per split.

    Models of the same ``group`` are trained together as one stack, and recorded together.
    ``for_dataset`` replaces settings on single datasets; ``fit_options`` go to ``fit``; ``keeps``
    names settings that the estimator chooses on the first split of a dataset (its attribute has the
    same name and an underscore), and that the other splits keep.
    """

    method: str
    estimator: str
    group: str
    settings: Settings
    readings: tuple[Reading, ...] = (Reading("plain"),)
    for_dataset: Mapping[str, Settings] = field(default_factory=dict)
    fit_options: Settings = field(default_factory=dict)
    keeps: tuple[str, ...] = ()

    def settings_on(self, dataset: str) -> dict[str, Any]:
        """The estimator's parameters on a dataset."""
        return {**self.settings, **self.for_dataset.get(dataset, {})}


@dataclass(frozen=True)
class Shared:
    """Groups of another study whose records this one reads as well."""

    study: str
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper.

    ``scheme`` says what trains and what tests:

    - ``"standard"``: the literature's random splits;
    - ``"outlier"``: the most anomalous tenth is held out, one forest seed per split;
    - ``"holdout"``: the dataset's own test rows, one network seed per split;
    - ``"toy"``: a fresh draw of the cubic per split, tested on a grid against the truth;
    - ``"formula"``: nothing is trained.

    ``splits`` counts them in the full protocol and ``quick_splits`` in the quick one; both may be
    replaced on single datasets. The quick protocol leaves out the groups in ``slow_groups`` on
    datasets of many rows (``LARGE`` and more).
    """

    name: str
    title: str
    about: str
    scheme: Scheme
    datasets: tuple[str, ...]
    models: tuple[Model, ...]
    splits: int
    quick_splits: int
    splits_on: Mapping[str, int] = field(default_factory=dict)
    quick_splits_on: Mapping[str, int] = field(default_factory=dict)
    slow_groups: tuple[str, ...] = ()
    shares: tuple[Shared, ...] = ()
    keep_predictions: bool = False

    def n_splits(self, dataset: str, group: str, *, quick: bool) -> int:
        """How many splits a group of models gets on a dataset."""
        full = self.splits_on.get(dataset, self.splits)
        if not quick:
            return full
        if group in self.slow_groups and info(dataset).n >= LARGE:
            return 0
        return min(full, self.quick_splits_on.get(dataset, self.quick_splits))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of models, in order."""
        return tuple(dict.fromkeys(model.group for model in self.models))
