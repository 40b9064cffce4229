"""Models of this library as those of skpro: its own checks, and more than two moments."""

import numpy as np
import pandas as pd
import pytest

import accord

pytest.importorskip("skpro")

from skpro.metrics import CRPS
from skpro.utils import check_estimator

from accord.adapters import SkproDistribution, SkproRegressor

# skpro warns of what it estimates from draws
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "kind", [pytest.param(SkproDistribution, marks=pytest.mark.slow), SkproRegressor]
)
def test_the_checks_of_skpro(kind: type) -> None:
    found = check_estimator(kind, raise_exceptions=False, verbose=False)
    assert len(found) > 30
    assert {name: str(result) for name, result in found.items() if result != "PASSED"} == {}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, 120)
    kind = rng.integers(0, 2, 120)  # skpro has no columns of text
    return pd.DataFrame({"a": a, "kind": kind, "y": a**2 + 0.1 * rng.normal(size=120)})


def test_a_table_model_keeps_its_distribution(frame: pd.DataFrame) -> None:
    """Quantiles of a mixture smoothed by its tolerance, which no normal distribution has."""
    engine = accord.BVMRegressor(tolerance=0.2, n_members=3, epochs=8, random_state=0)
    model = accord.TableRegressor(engine=engine, random_state=0)
    X, new = frame[["a", "kind"]], frame[["a", "kind"]].iloc[100:]
    wrapped = SkproRegressor(model).fit(X, frame[["y"]])
    direct = model.fit(X, frame["y"].to_numpy()).predict_dist(new)
    dist = wrapped.predict_proba(new)
    assert dist.index.equals(new.index)
    levels = [0.01, 0.5, 0.99]
    np.testing.assert_allclose(
        wrapped.predict_quantiles(new, alpha=levels), direct.quantile(levels)
    )
    ends = wrapped.predict_interval(new, coverage=0.9)
    np.testing.assert_allclose(ends, direct.interval(0.9))
    y = frame[["y"]].iloc[100:]
    np.testing.assert_allclose(dist.log_pdf(y)["y"], direct.log_prob(y["y"].to_numpy()))
    own = np.asarray(direct.crps(y["y"].to_numpy())).mean()
    assert CRPS()(y, dist) == pytest.approx(own, rel=0.1)  # skpro's is drawn
