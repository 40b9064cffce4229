"""The public names, pinned: a change here is a change of the interface."""

import subprocess
import sys

import accord

PUBLIC = [
    "AgreementLoss",
    "AtLeast",
    "AtMost",
    "BVMLoss",
    "BVMRegressor",
    "DeepEnsembleRegressor",
    "Empirical",
    "EvidentialRegressor",
    "Exact",
    "Inside",
    "Laplace",
    "Logistic",
    "MCDropoutRegressor",
    "MSEEnsembleRegressor",
    "Mixture",
    "Normal",
    "PBPRegressor",
    "PortfolioRegressor",
    "Recalibrated",
    "Smoothed",
    "StudentT",
    "TableRegressor",
    "TrustScore",
    "Uniform",
    "Within",
    "WithinRelative",
    "__version__",
    "agreement",
    "calibration",
    "datasets",
    "distributions",
    "estimators",
    "load",
    "losses",
    "metrics",
    "plots",
    "probability_of_agreement",
    "splits",
    "validation",
]


def test_public_names() -> None:
    assert sorted(accord.__all__) == sorted(PUBLIC)


def test_every_public_name_is_there() -> None:
    assert all(getattr(accord, name) is not None for name in accord.__all__)


def test_import_is_light() -> None:
    code = (
        "import sys, accord; print({'torch', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
