"""Estimators in a notebook: scikit-learn's picture, and a card of state and scores."""

import re
from html import unescape

import numpy as np
import pytest

import accord
from accord._wording import percent
from accord.workflows import FitResult


def card_of(estimator: object) -> dict[str, str]:
    """Titles and texts of the card, as a notebook shows them."""
    page = estimator._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]
    assert "sk-top-container" in page
    lines = re.findall(r'<th scope="row"[^>]*>(.*?)</th><td[^>]*>(.*?)</td>', page)
    return {unescape(title): unescape(words) for title, words in lines}


@pytest.mark.parametrize(
    "make", [accord.TableRegressor, accord.PortfolioRegressor, accord.BVMRegressor]
)
def test_an_unfitted_one_says_so(make: type) -> None:
    assert card_of(make()) == {"state": "not fitted"}


def test_a_table_model_says_how_far_it_can_be_trusted(fitted: FitResult) -> None:
    found = card_of(fitted.model)
    assert found["state"] == "fitted on 150 rows, 5 columns"
    assert found["predicts"] == "price"
    covered = percent(fitted.held_out.covered)
    assert found["held-out rows"] == f"{covered} lie in their 95 % interval"
    assert "unusual rows" in found
    engine = card_of(fitted.model.engine_)
    assert engine["state"].startswith("fitted on ")
    assert "%" in engine["mixed"]
    assert "NLL out of fold" in engine


def test_an_ensemble_says_that_it_is_fitted() -> None:
    X = np.linspace(0, 1, 20)[:, None]
    model = accord.BVMRegressor(n_members=2, epochs=2, random_state=0).fit(X, X[:, 0])
    assert card_of(model)["state"] == "fitted on 1 feature"


def test_names_from_a_table_stay_text(fitted: FitResult) -> None:
    from accord.estimators import html_card

    class Hostile(accord.BVMRegressor):
        def _facts(self) -> dict[str, str]:
            return {"state": "<script>alert(1)</script>"}

    page = html_card(Hostile())
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
