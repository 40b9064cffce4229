"""The public names, pinned: a change here is a change of the interface."""

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

import accord

ROOT = Path(__file__).parents[1]

PUBLIC = [
    "AgreementLoss",
    "AllWithin",
    "AtLeast",
    "AtMost",
    "BVMLoss",
    "BVMRegressor",
    "DatasetAgreementLoss",
    "DeepEnsembleRegressor",
    "EachOutput",
    "Empirical",
    "EvidentialRegressor",
    "Exact",
    "GuardedRegressor",
    "Inside",
    "JointAgreementLoss",
    "JointBVMRegressor",
    "Laplace",
    "Logistic",
    "MCDropoutRegressor",
    "MSEEnsembleRegressor",
    "Mixture",
    "ModuleRegressor",
    "MultivariateNormal",
    "NormWithin",
    "Normal",
    "PBPRegressor",
    "PortfolioRegressor",
    "PredictiveModel",
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
    "guard",
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


@pytest.mark.parametrize("package", ["accord", "accord.paper", "accord.report", "accord.workflows"])
def test_every_name_that_is_loaded_on_first_use_is_there(package: str) -> None:
    module = import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert dir(module) == sorted(module.__all__)


def test_import_is_light() -> None:
    code = (
        "import sys, accord; print({'torch', 'pandas', 'matplotlib', 'sklearn'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


PROGRAM = """\
import accord
accord.BVMRegressor(tolerance=3)
accord.BVMRegressor(tolerence=3)
accord.BVMRegresor()
reveal_type(accord.BVMRegressor().predict_interval([[0.0]]))
reveal_type(accord.PortfolioRegressor().predict([[0.0]], return_std=True))
reveal_type(accord.load("m.accord").predict_quantiles([[0.0]], alpha=0.5))
reveal_type(accord.load("m.accord", accord.TableRegressor))
accord.load("m.accord").predict_intervall([[0.0]])
reveal_type(accord.load("m.accord").predict_dist([[0.0]]).mean)
models: list[accord.PredictiveModel] = [
    accord.BVMRegressor(),
    accord.GuardedRegressor(accord.BVMRegressor()),
    accord.JointBVMRegressor(),
    accord.PortfolioRegressor(),
    accord.Recalibrated(accord.BVMRegressor()),
    accord.TableRegressor(),
    accord.Normal([0.0], 1.0),
]
"""


def test_type_checkers_know_the_classes(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    out = subprocess.run(
        [*command, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
    )
    said = dict(re.findall(r"program\.py:(\d+): (error: .*|note: Revealed.*)", out.stdout))
    assert sorted(said, key=int) == ["3", "4", "5", "6", "7", "8", "9", "10", "18"]
    assert 'Unexpected keyword argument "tolerence"' in said["3"]
    assert 'Module has no attribute "BVMRegresor"' in said["4"]
    assert 'Revealed type is "numpy.ndarray[' in said["5"]
    assert 'Revealed type is "tuple[numpy.ndarray[' in said["6"]
    assert 'Revealed type is "numpy.ndarray[' in said["7"]
    assert "TableRegressor" in said["8"]
    assert '"PredictiveModel" has no attribute "predict_intervall"' in said["9"]
    assert 'Revealed type is "numpy.ndarray[' in said["10"]
    assert "Normal" in said["18"]


def returned(function: Callable[..., object]) -> str:
    """What a function says that it returns, in its own words."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    return "" if node.returns is None else ast.unparse(node.returns)


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Functions, and methods of classes, of the public names."""
    for name in accord.__all__:
        value = getattr(accord, name)
        members = inspect.getmembers(value) if inspect.isclass(value) else [(name, value)]
        for own, member in members:
            ours = inspect.isfunction(member) and member.__module__.startswith("accord.")
            if ours and not own.startswith("_"):
                yield f"{name}.{own}", member


def test_public_functions_say_what_they_return() -> None:
    found = {name: returned(function) for name, function in public_functions()}
    assert len(found) > 100
    assert [name for name, words in found.items() if words in ("", "Any")] == []


def test_a_misspelt_name_brings_the_right_one() -> None:
    code = "import accord; accord.TableRegresor"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Did you mean: 'TableRegressor'?" in run.stderr
