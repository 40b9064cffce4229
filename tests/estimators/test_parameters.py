"""Every parameter is described where a reader looks for it, in the order of the signature."""

import inspect
import re

import pytest

import accord

ESTIMATORS = [
    accord.BVMRegressor,
    accord.DeepEnsembleRegressor,
    accord.EvidentialRegressor,
    accord.JointBVMRegressor,
    accord.MCDropoutRegressor,
    accord.MSEEnsembleRegressor,
    accord.ModuleRegressor,
    accord.PBPRegressor,
    accord.PortfolioRegressor,
    accord.Recalibrated,
    accord.TableRegressor,
    accord.TrustScore,
]


def described(estimator: type) -> list[str]:
    """The parameters in the list ``Args:`` of a class' own docstring."""
    text = inspect.cleandoc(estimator.__doc__ or "")
    block = re.search(r"^Args:\n((?:    .*\n|\n)*)", text + "\n", flags=re.M)
    assert block is not None, f"{estimator.__name__} describes no parameters"
    names = re.findall(r"^    (\w[\w, ]*):", block[1], flags=re.M)
    return [name for line in names for name in line.split(", ")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_every_parameter_is_described_in_place(estimator: type) -> None:
    assert described(estimator) == list(inspect.signature(estimator).parameters)


@pytest.mark.parametrize(
    ("estimator", "first"),
    [
        (accord.BVMRegressor, ["tolerance", "rule", "n_members", "hidden", "epochs"]),
        (accord.DeepEnsembleRegressor, ["n_members", "hidden", "epochs"]),
        (accord.MCDropoutRegressor, ["dropout_rate", "precision", "n_passes", "hidden", "epochs"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_matters_comes_first(estimator: type, first: list[str]) -> None:
    assert list(inspect.signature(estimator).parameters)[: len(first)] == first
