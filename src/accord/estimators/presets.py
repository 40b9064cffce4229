"""The paper's recipes as data, and its rivals': one place for the presets and for the studies.

A recipe holds every setting of the networks that the paper prints, under the names that the
estimators use. A preset is a recipe with the tolerance and the predictive of the paper's method.
The paper gives ε as a share of the targets' range, written here as a percentage; the toy's alone is
in target units, since its targets are not scaled.
"""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, Any]

# The paper states no floor, and one of 1e-12 already changes its networks: trained within ε, some
# of their variances fall to 2e-12. Far from the data a float32 variance may even be exactly 0,
# which has no density; this floor prevents that, and is lost in rounding above 1e-22.
_FLOOR = 1e-30
_NETWORK: Settings = {
    "n_members": 5,
    "hidden": (50,),
    "activation": "relu",
    "epochs": 40,
    "target_scaling": "range",
    "mean_head": "sigmoid",
    "variance_head": "sigmoid",
    "variance_floor": _FLOOR,
}
_TABLE1: Settings = {
    **_NETWORK,
    "optimizer": "adamw",
    "learning_rate": 3e-4,
    "weight_decay": 0.01,
    "batch_size": 32,
}
_STOCKS: Settings = {
    **_NETWORK,
    "hidden": (50, 50, 50, 50),
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "batch_size": 32,
}
RECIPES: Mapping[str, Settings] = {
    "table1": _TABLE1,
    "table1-protein": {**_TABLE1, "hidden": (100,)},
    # ours: ten times the printed rate, which leaves the small sets half trained
    "table1-tuned": {**_TABLE1, "learning_rate": 3e-3},
    "stocks": _STOCKS,
    # the paper prints sigmoid heads for the UCI sets only; this is the other way to read it
    "stocks-identity": {**_STOCKS, "mean_head": "identity"},
    "table3": {**_NETWORK, "optimizer": "adam", "learning_rate": 3e-3, "batch_size": 16},
    # of the toy the paper prints one hidden layer of 100 units and unscaled targets; the rest is
    # ours, and the variance is not squeezed below 1, since the noise has variance 9
    "toy": {
        **_NETWORK,
        "hidden": (100,),
        "target_scaling": "none",
        "mean_head": "identity",
        "variance_head": "softplus",
        "optimizer": "adam",
        "learning_rate": 0.1,
        "epochs": 100,
        "batch_size": 4,
    },
    # the rivals that the paper quotes, by the recipes of their own papers
    "pbp": {"hidden": (50,), "epochs": 40},
    "mc-dropout": {"hidden": (50,), "epochs": 400, "batch_size": 32},
    # ours: a larger rate that falls to 0, standardised targets, the mean free to leave their range
    "cosine": {
        **_NETWORK,
        "optimizer": "adam",
        "learning_rate": 1e-2,
        "schedule": "cosine",
        "batch_size": 32,
        "target_scaling": "standard",
        "mean_head": "identity",
        "variance_head": "softplus",
    },
}


def _preset(recipe: str, tolerance: str | float) -> Settings:
    return {
        **RECIPES[recipe],
        "tolerance": tolerance,
        "predictive": "model",
        "combine": "moments",
    }


PRESETS: Mapping[str, Settings] = {
    "table1": _preset("table1", "1%"),
    "table1-protein": _preset("table1-protein", "1%"),
    "table1-tuned": _preset("table1-tuned", "1%"),
    "stocks": _preset("stocks", "1%"),
    "stocks-identity": _preset("stocks-identity", "1%"),
    "table3": _preset("table3", "1%"),
    "toy": _preset("toy", 1.0),
}
