"""What a study is: data, methods with all their settings, splits, and what the paper prints.

A study is one table or figure of the paper, or a question of ours, and has one module, which holds
its runs (``GROUPS``), its departures from the paper, its tables, claims and figures. Everything
here is plain values; what is trained is decided by :mod:`accord.paper.stacks`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from accord._types import Floats
from accord.datasets import info

if TYPE_CHECKING:
    from matplotlib import figure

    from accord.paper.claims import JudgedClaim
    from accord.paper.results import Results
    from accord.paper.tables import ResultTable


LARGE = 5_000  # rows
Settings = Mapping[str, Any]
Scheme = Literal["standard", "outlier", "holdout", "toy", "own"]
Drawing = tuple[str, "figure.Figure", str]  # name, figure, what it shows in words


class Answer(NamedTuple):
    """What a method gives on one split: measures, curves for the figures, and notes."""

    measures: Mapping[str, float]
    curves: Mapping[str, Floats]
    notes: Mapping[str, Any] = {}


# From a group's name, a dataset and a split to the answers by method and recipe.
Work = Callable[[str, str, int], Mapping[tuple[str, str], Answer]]


@dataclass(frozen=True)
class Predictive:
    """How trained networks are turned into a predictive distribution.

    ``settings`` are parameters that matter only when predicting, so one training serves several.
    ``recalibration`` is a method of :class:`~accord.calibration.Recalibrated`, learnt on the rows
    that the model holds out.
    """

    name: str
    settings: Settings = field(default_factory=dict)
    recalibration: Literal["variance", "layers"] | None = None


PLAIN = Predictive("plain")
AS_PRINTED = Predictive("as printed", {"predictive": "model"})
SMOOTHED = Predictive("smoothed", {"predictive": "smoothed"})
LOCAL = Predictive("local", {"predictive": "smoothed"})


@dataclass(frozen=True)
class Source:
    """Where numbers come from: a method of a study, its recipe and its predictive."""

    study: str
    method: str
    recipe: str
    predictive: str = PLAIN.name


@dataclass(frozen=True)
class StudyModel:
    """A method by one recipe: an estimator of :mod:`accord.estimators`, trained once per split.

    ``for_dataset`` replaces settings on single datasets; ``chosen_once`` names settings that the
    estimator chooses on the first split of a dataset (its attribute has the same name and an
    underscore) and that the other splits use as well. ``held_out`` is the share of the training
    rows that it is not trained on, and that recalibrating predictives learn from.
    """

    method: str
    recipe: str
    estimator: str
    settings: Settings
    predictives: tuple[Predictive, ...] = (PLAIN,)
    for_dataset: Mapping[str, Settings] = field(default_factory=dict)
    chosen_once: tuple[str, ...] = ()
    held_out: float = 0.0

    def settings_on(self, dataset: str) -> dict[str, Any]:
        """The estimator's parameters on a dataset."""
        return {**self.settings, **self.for_dataset.get(dataset, {})}


def deep_ensembles(
    recipe: str, settings: Settings, *, for_dataset: Mapping[str, Settings] | None = None
) -> StudyModel:
    """Deep Ensembles by a recipe."""
    estimator = "DeepEnsembleRegressor"
    return StudyModel("Deep Ensembles", recipe, estimator, settings, for_dataset=for_dataset or {})


def bvm_ensemble(
    recipe: str,
    settings: Settings,
    tolerance: float | str,
    *,
    method: str = "BVM",
    for_dataset: Mapping[str, Settings] | None = None,
) -> StudyModel:
    """BVM with a tolerance; a local one predicts in its own way, others as printed and smoothed."""
    predictives = (LOCAL,) if tolerance == "local" else (AS_PRINTED, SMOOTHED)
    own = {**settings, "tolerance": tolerance}
    return StudyModel(method, recipe, "BVMRegressor", own, predictives, for_dataset or {})


@dataclass(frozen=True)
class Protocol:
    """What trains and what tests.

    ``scheme`` is one of

    - ``"standard"``: the literature's random splits;
    - ``"outlier"``: the most anomalous tenth is held out, one forest seed per split;
    - ``"holdout"``: the dataset's own test rows, one network seed per split;
    - ``"toy"``: a fresh draw of the cubic per split, tested on a grid against the truth;
    - ``"own"``: what the group's own function makes of a dataset and a split.

    ``splits`` counts them in the full protocol and ``quick_splits`` in the quick one; both may be
    replaced on single datasets. ``keep_predictions`` records the predictions for figures.
    """

    scheme: Scheme
    datasets: tuple[str, ...]
    splits: int
    quick_splits: int
    splits_on: Mapping[str, int] = field(default_factory=dict)
    quick_splits_on: Mapping[str, int] = field(default_factory=dict)
    keep_predictions: bool = False


@dataclass(frozen=True)
class Group:
    """Models that are trained together as one stack, and recorded together.

    A study may list groups of another one, whose records it then reads as well. The quick protocol
    leaves out ``slow`` groups on datasets of many rows (``LARGE`` and more). A group whose
    models are no estimators of accord's, or none at all, has a function ``answered_by`` in their
    place; it answers by method and recipe.
    """

    study: str
    name: str
    protocol: Protocol
    models: tuple[StudyModel, ...]
    slow: bool = False
    answered_by: Work | None = None

    def n_splits(self, dataset: str, *, quick: bool) -> int:
        """How many splits the group gets on a dataset."""
        protocol = self.protocol
        full = protocol.splits_on.get(dataset, protocol.splits)
        if not quick:
            return full
        if self.slow and info(dataset).n >= LARGE:
            return 0
        return min(full, protocol.quick_splits_on.get(dataset, protocol.quick_splits))


@dataclass(frozen=True)
class Departure:
    """Where we do not do, or cannot know that we do, what the paper says."""

    paper: str
    ours: str
    why: str


# Departures that all studies with networks share.
SCORED = Departure(
    "evaluates μ* and σ*² = K⁻¹Σ(σ² + μ) − μ*² against the test set",
    "scores the Gaussian with mean μ* and variance K⁻¹Σ(σ² + μ²) − μ*²; the NLL of the mixture "
    "itself has tables of its own",
    "the printed formula lacks a square; which density is scored is not said, and the mixture is "
    "what the estimators predict",
)
FLOOR = Departure(
    "no lower bound of the variance",
    "adds 1e-30 of the squared scale to every variance; a network whose loss is no longer finite "
    "is started again with a tenth of the rate",
    "a variance of exactly 0 has no density; in float32 the sum is lost in rounding wherever a "
    "variance exceeds 1e-22, and the smallest seen was 2e-12",
)
SMOOTHING = Departure(
    "predicts with the networks' own N(μ, σ²)",
    "that (as printed), and the same networks smoothed by their tolerance (smoothed)",
    "the smoothed density is the one whose likelihood the loss maximises (docs/theory.md)",
)
NO_ADVERSARY = Departure(
    "Deep Ensembles, whose own paper trains on adversarial neighbours as well",
    "the same networks and recipe as BVM, trained on NLL, without adversarial training",
    "so that the loss is the only difference between the two columns",
)
SHARED = (NO_ADVERSARY, SCORED, FLOOR, SMOOTHING)


def _nothing(results: "Results") -> Sequence[Any]:
    """For a study that has no such part."""
    return []


@dataclass(frozen=True)
class Study:
    """One table or figure of the paper, or a question of ours.

    ``asks`` is the question behind its claims. ``claims`` judges what the paper says, on the
    paper's method; ``beyond`` what it does not say. ``terms`` say how a study of ours was set up,
    as ``departures`` do for one of the paper's.
    """

    name: str
    title: str
    asks: str
    about: str
    departures: tuple[Departure, ...]
    groups: tuple[Group, ...]
    tables: Callable[["Results"], Sequence["ResultTable"]]
    claims: Callable[["Results"], Iterable["JudgedClaim"]] = _nothing
    beyond: Callable[["Results"], Iterable["JudgedClaim"]] = _nothing
    figures: Callable[["Results"], Sequence[Drawing]] = _nothing
    terms: tuple[str, ...] = ()


# --- what the paper prints -----------------------------------------------------------------------

PrintedTable = Literal["table1", "table2", "table3", "calibration"]


@dataclass(frozen=True)
class Figure:
    """A printed number: its value, its standard error where one is printed, and its decimals.

    ``single`` marks the outcome of one run, whose spread the paper does not say.
    """

    value: float
    error: float | None
    decimals: int
    single: bool = False

    @property
    def rounding(self) -> float:
        """Standard deviation of what printing has rounded off, uniform in half a last digit."""
        return float(10.0**-self.decimals / 12**0.5)


def published(
    table: PrintedTable, dataset: str, measure: str, method: str | None = None
) -> Figure | None:
    """What was published, or None where the paper prints nothing.

    Args:
        table: Which table.
        dataset: Name of the dataset, as in :func:`accord.datasets.names`.
        measure: ``"rmse"``, ``"nll"``, ``"ece"``, ``"mce"``, ``"mean_shift"`` or
            ``"variance_shift"``.
        method: The column's heading in the paper; None for the shifts, which have none.

    Example:
        >>> published("table1", "boston", "nll", "BVM")
        Figure(value=2.52, error=0.08, decimals=2, single=False)
    """
    entry = _printed()[table].get(dataset, {}).get(measure)
    if method is not None:
        entry = (entry or {}).get(method)
    if entry is None:
        return None
    decimals = 4 if table == "calibration" else 2
    if isinstance(entry, list):
        return Figure(float(entry[0]), float(entry[1]), decimals)
    return Figure(float(entry), None, decimals, single=table in ("table2", "table3"))


def printed(table: PrintedTable, dataset: str, measure: str, method: str) -> Figure:
    """:func:`published` where there is one; ``KeyError`` where the paper prints nothing."""
    found = published(table, dataset, measure, method)
    if found is None:
        raise KeyError(f"{table} prints no {measure} of {method} on {dataset}.")
    return found


def published_datasets(table: PrintedTable) -> list[str]:
    """The table's rows."""
    return list(_printed()[table])


def is_grey(dataset: str) -> bool:
    """Whether Table 3 shades the row: a large shift between training and test targets."""
    return bool(_printed()["table3"][dataset]["grey"])


@cache
def _printed() -> dict[str, Any]:
    text = files("accord.paper").joinpath("published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
