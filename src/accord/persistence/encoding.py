"""Fitted objects as JSON values and arrays, and back.

Numbers, text, lists and dictionaries stand for themselves. All else is a JSON object whose key
``"is"`` says what it is; an array is the number of its file. An object that occurs twice is
written once.
"""

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from accord._wording import quoted

# Stable name → where the class is now. The place is a package's public name where it has one.
TYPES: dict[str, str] = {
    "BVMRegressor": "accord.estimators:BVMRegressor",
    "DeepEnsembleRegressor": "accord.estimators:DeepEnsembleRegressor",
    "EvidentialRegressor": "accord.estimators:EvidentialRegressor",
    "JointBVMRegressor": "accord.estimators:JointBVMRegressor",
    "MCDropoutRegressor": "accord.estimators:MCDropoutRegressor",
    "MSEEnsembleRegressor": "accord.estimators:MSEEnsembleRegressor",
    "ModuleRegressor": "accord.estimators:ModuleRegressor",
    "PBPRegressor": "accord.estimators:PBPRegressor",
    # Rules of agreement that a BVMRegressor was given.
    "Exact": "accord.agreement:Exact",
    "Within": "accord.agreement:Within",
    "WithinRelative": "accord.agreement:WithinRelative",
    "Asymmetric": "accord.agreement:Asymmetric",
    "ErrorInside": "accord.agreement:ErrorInside",
    "AtLeast": "accord.agreement:AtLeast",
    "AtMost": "accord.agreement:AtMost",
    "Inside": "accord.agreement:Inside",
    "Both": "accord.agreement.rules:Both",
    "Either": "accord.agreement.rules:Either",
    "Negated": "accord.agreement.rules:Negated",
    "Share": "accord.agreement:Share",
    # Rules over several outputs that a JointBVMRegressor was given.
    "AllWithin": "accord.agreement:AllWithin",
    "EachOutput": "accord.agreement:EachOutput",
    "JointBoth": "accord.agreement.joint_rules:JointBoth",
    "JointEither": "accord.agreement.joint_rules:JointEither",
    "JointNot": "accord.agreement.joint_rules:JointNot",
    "NormWithin": "accord.agreement:NormWithin",
    "Growth": "accord.trust:Growth",
    "ToleranceCurve": "accord.estimators:ToleranceCurve",
    "Proximity": "accord.trust:Proximity",
    "TrustScore": "accord.trust:TrustScore",
    "Conformal": "accord.calibration:Conformal",
    "ExtraLayers": "accord.calibration:ExtraLayers",
    "IsotonicCalibration": "accord.calibration:IsotonicCalibration",
    "LikelihoodRatio": "accord.calibration:LikelihoodRatio",
    "Recalibrated": "accord.calibration:Recalibrated",
    "VarianceScaling": "accord.calibration:VarianceScaling",
    "CellFormat": "accord.tables:CellFormat",
    "Column": "accord.tables:Column",
    "Schema": "accord.tables:Schema",
    "TableEncoder": "accord.tables:TableEncoder",
    "TableRegressor": "accord.tabular:TableRegressor",
    "GuardedRegressor": "accord.tabular:GuardedRegressor",
    "TableProfile": "accord.tabular:TableProfile",
    "PortfolioRegressor": "accord.portfolio:PortfolioRegressor",
    "JudgedModel": "accord.portfolio:JudgedModel",
    "LeaderboardEntry": "accord.portfolio:LeaderboardEntry",
    "Residuals": "accord.portfolio:Residuals",
    "Member": "accord.portfolio.blend:Member",
    "Stray": "accord.portfolio.components:Stray",
    "LocalTolerance": "accord.portfolio.blend:LocalTolerance",
    "Blanks": "accord.portfolio.blanks:Blanks",
    "Widening": "accord.portfolio.local:Widening",
    "Calibration": "accord.portfolio.components:Calibration",
    "TargetScale": "accord.portfolio.encoding:TargetScale",
    "FeatureEncoding": "accord.portfolio.encoding:FeatureEncoding",
    "NetworkModel": "accord.portfolio.networks:NetworkModel",
    "NetworkRecipe": "accord.portfolio.recipes:NetworkRecipe",
    "GaussianProcessModel": "accord.portfolio.gaussian_process:GaussianProcessModel",
    "GaussianProcessRecipe": "accord.portfolio.recipes:GaussianProcessRecipe",
    "CorrectedModel": "accord.portfolio.corrected:CorrectedModel",
    "CorrectedRecipe": "accord.portfolio.recipes:CorrectedRecipe",
    "Covariance": "accord.portfolio.covariance:Covariance",
    "GaussianProcess": "accord.portfolio.gaussian_process:GaussianProcess",
    "BoostingModel": "accord.portfolio.boosting:BoostingModel",
    "BoostingRecipe": "accord.portfolio.recipes:BoostingRecipe",
    "Trees": "accord.portfolio.boosting:Trees",
    "RidgeModel": "accord.portfolio.ridge:RidgeModel",
    "RidgeRecipe": "accord.portfolio.recipes:RidgeRecipe",
    "Line": "accord.portfolio.ridge:Line",
    # What a run that was stopped goes on from.
    "Candidate": "accord.portfolio.crossfit:Candidate",
    "Components": "accord.portfolio.components:Components",
    # What an estimator of this package may be built of or around; their state is plain numbers.
    "sklearn.Pipeline": "sklearn.pipeline:Pipeline",
    "sklearn.StandardScaler": "sklearn.preprocessing:StandardScaler",
    "sklearn.MinMaxScaler": "sklearn.preprocessing:MinMaxScaler",
    "sklearn.RobustScaler": "sklearn.preprocessing:RobustScaler",
    "sklearn.LinearRegression": "sklearn.linear_model:LinearRegression",
    "sklearn.Ridge": "sklearn.linear_model:Ridge",
    "sklearn.RidgeCV": "sklearn.linear_model:RidgeCV",
    "sklearn.Lasso": "sklearn.linear_model:Lasso",
    "sklearn.LassoCV": "sklearn.linear_model:LassoCV",
    "sklearn.ElasticNet": "sklearn.linear_model:ElasticNet",
    "sklearn.ElasticNetCV": "sklearn.linear_model:ElasticNetCV",
    "sklearn.HuberRegressor": "sklearn.linear_model:HuberRegressor",
    "sklearn.QuantileRegressor": "sklearn.linear_model:QuantileRegressor",
    "sklearn.BayesianRidge": "sklearn.linear_model:BayesianRidge",
    "sklearn.LogisticRegression": "sklearn.linear_model:LogisticRegression",
    "sklearn.KFold": "sklearn.model_selection:KFold",
    "sklearn.ShuffleSplit": "sklearn.model_selection:ShuffleSplit",
}


@cache
def class_of(name: str) -> type[Any]:
    """The class with a stable name; ``KeyError`` if the list has none.

    >>> class_of("sklearn.StandardScaler").__name__
    'StandardScaler'
    """
    module, _, attribute = TYPES[name].partition(":")
    found: type[Any] = getattr(importlib.import_module(module), attribute)
    return found


def given_on_load(cls: type[Any]) -> tuple[str, ...]:
    """Parts of an object that are code, which no file holds: its user gives them on loading."""
    return tuple(getattr(cls, "_given_on_load", ()))


def name_of(cls: type[Any]) -> str:
    """The stable name of a class; ``KeyError`` if it is not on the list."""
    for name, place in TYPES.items():
        # Only modules of candidates are imported: a model needs few of those on the list.
        if place.endswith(f":{cls.__name__}") and class_of(name) is cls:
            return name
    raise KeyError(cls.__qualname__)


Array = NDArray[Any]

# No model nests deeper; a hostile file may.
_DEPTH = 60
_NUMPY_KINDS = "biufMmUS"
_BIT_GENERATORS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


class EncodingError(ValueError):
    """A value that is not what this module writes."""


class LayoutError(ValueError):
    """An object without parts that its class has in this build of accord."""


class MissingCodeError(ValueError):
    """A model with a part that is code, loaded without that part."""


class Encoder:
    """Turns objects into JSON values and collects their arrays in ``arrays``."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._known: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is good only while its object lives

    def encode(self, value: Any, *, depth: int = 0) -> Any:
        """The JSON value of an object, ``TypeError`` if it has none."""
        if depth > _DEPTH:
            raise TypeError(f"a model is saved at most {_DEPTH} levels deep. Is it part of itself?")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, np.generic) and not isinstance(value, str | bytes):
            return self._scalar(value)
        if isinstance(value, str | int):
            return str(value) if isinstance(value, str) else int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"is": "number", "value": str(value)}
        if type(value) in (list, tuple, dict):
            return self._container(value, depth + 1)
        return self._shared(value, depth + 1)

    def _scalar(self, value: np.generic) -> dict[str, Any]:
        if value.dtype.kind not in "biuf":
            raise TypeError(f"a model is saved with plain numbers, got a {type(value).__name__}.")
        return {"is": "scalar", "dtype": value.dtype.str, "value": self.encode(value.item())}

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, list):
            return [self.encode(item, depth=depth) for item in value]
        if isinstance(value, tuple):
            return {"is": "tuple", "items": [self.encode(item, depth=depth) for item in value]}
        if all(type(key) is str for key in value) and "is" not in value:
            return {key: self.encode(item, depth=depth) for key, item in value.items()}
        pairs = [[self.encode(k), self.encode(item, depth=depth)] for k, item in value.items()]
        return {"is": "dict", "items": pairs}

    def _shared(self, value: Any, depth: int) -> dict[str, Any]:
        if id(value) in self._known:
            return {"is": "same", "as": self._known[id(value)]}
        number = self._known[id(value)] = len(self._known)
        self._alive.append(value)
        return {**self._described(value, depth), "number": number}

    def _described(self, value: Any, depth: int) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value, depth)
        if isinstance(value, np.dtype) and value.kind in "biuf":
            return {"is": "dtype", "name": value.str}
        if isinstance(value, np.random.Generator):
            return {"is": "generator", "state": self.encode(value.bit_generator.state, depth=depth)}
        if isinstance(value, np.random.RandomState):
            state = value.get_state(legacy=False)
            return {"is": "random state", "state": self.encode(state, depth=depth)}
        try:
            name = name_of(type(value))
        except KeyError:
            raise TypeError(_why_unknown(value)) from None
        return {"is": "object", "type": name, "state": self.encode(_state(value), depth=depth)}

    def _array(self, value: Array, depth: int) -> dict[str, Any]:
        if value.dtype.kind == "O":
            items = [self.encode(item, depth=depth) for item in value.ravel()]
            return {"is": "objects", "shape": list(value.shape), "items": items}
        if value.dtype.kind not in _NUMPY_KINDS or value.dtype.names:
            raise TypeError(f"a model is saved with plain arrays, got one of {value.dtype}.")
        self.arrays.append(np.asarray(value))
        return {"is": "array", "file": len(self.arrays) - 1}


def _why_unknown(value: Any) -> str:
    from accord.agreement import BooleanRule  # slow to import, and seldom needed

    if isinstance(value, BooleanRule | FunctionType | BuiltinFunctionType | MethodType | partial):
        shown = getattr(value, "__name__", None) or repr(value)
        return (
            f"a model file holds no code, got the callable {shown}. Write a rule with Within, "
            "ErrorInside and their like, joined by & and |, or in words; a fitted model with "
            "predictive='model' needs its rule no longer, and set_params(rule=None) leaves it out."
        )
    kind = type(value)
    return (
        "a model is saved with types that accord knows, got "
        f"{kind.__module__}.{kind.__qualname__}. Save that part by itself."
    )


def _state(value: Any) -> Any:
    state = value.__getstate__()
    given = given_on_load(type(value))
    if given:
        return {name: part for name, part in state.items() if name not in given}
    return {} if state is None else state


class Decoder:
    """Turns JSON values back into objects; ``read`` gives the array of a number.

    ``code`` holds by name what no file does; ``used`` says afterwards what of it was needed.
    """

    def __init__(self, read: Callable[[int], Array], code: Mapping[str, Any] | None = None) -> None:
        self._read = read
        self._code = code or {}
        self.used: set[str] = set()
        self._known: dict[int, Any] = {}
        self._kinds: dict[str, Callable[[dict[str, Any], int], Any]] = {
            "number": lambda value, depth: _number(value["value"]),
            "scalar": self._scalar,
            "tuple": lambda value, depth: tuple(self._items(value["items"], depth)),
            "dict": self._dict,
            "same": lambda value, depth: self._known[value["as"]],
            "array": lambda value, depth: self._read(_count(value["file"])),
            "objects": self._objects,
            "dtype": lambda value, depth: _dtype(value["name"]),
            "generator": self._generator,
            "random state": self._random_state,
        }

    def decode(self, value: Any, *, depth: int = 0) -> Any:
        """The object of a JSON value, ``EncodingError`` if it is none of ours."""
        if depth > _DEPTH:
            raise EncodingError(f"it nests deeper than {_DEPTH} levels")
        if isinstance(value, list):
            return self._items(value, depth + 1)
        if not isinstance(value, dict):
            return value
        kind = value.get("is")
        if kind is None:
            return {key: self.decode(item, depth=depth + 1) for key, item in value.items()}
        if kind == "object":
            return self._object(value, depth + 1)
        if kind not in self._kinds:
            raise EncodingError(f"it holds something called {quoted(kind)}")
        found = self._kinds[kind](value, depth + 1)
        if "number" in value and kind != "number":
            self._known[_count(value["number"])] = found
        return found

    def _items(self, values: Any, depth: int) -> list[Any]:
        if not isinstance(values, list):
            raise EncodingError("a list is not one")
        return [self.decode(value, depth=depth) for value in values]

    def _scalar(self, value: dict[str, Any], depth: int) -> Any:
        number = self.decode(value["value"], depth=depth)
        if not isinstance(number, int | float):
            raise EncodingError(f"it holds a number {quoted(number)}")
        return _dtype(value["dtype"]).type(number)

    def _dict(self, value: dict[str, Any], depth: int) -> dict[Any, Any]:
        pairs = [self._items(pair, depth) for pair in value["items"]]
        return dict(pairs)

    def _objects(self, value: dict[str, Any], depth: int) -> Array:
        items = self._items(value["items"], depth)
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape([_count(size) for size in value["shape"]])

    def _generator(self, value: dict[str, Any], depth: int) -> np.random.Generator:
        state = self.decode(value["state"], depth=depth)
        if state["bit_generator"] not in _BIT_GENERATORS:
            raise EncodingError(f"it holds a random generator {quoted(state['bit_generator'])}")
        source = getattr(np.random, state["bit_generator"])()
        source.state = state
        return np.random.Generator(source)

    def _random_state(self, value: dict[str, Any], depth: int) -> np.random.RandomState:
        random = np.random.RandomState(0)
        random.set_state(self.decode(value["state"], depth=depth))
        return random

    def _object(self, value: dict[str, Any], depth: int) -> Any:
        try:
            cls = class_of(value["type"])
        except KeyError:
            raise EncodingError(
                f"it holds a type that accord does not know: {quoted(value['type'])}"
            ) from None
        found = object.__new__(cls)
        self._known[_count(value["number"])] = found
        state = self.decode(value["state"], depth=depth)
        for name in given_on_load(cls):
            if name not in self._code:
                raise MissingCodeError(
                    f"{name} must be given to load this model, got none: a model file holds no "
                    f"code. Write accord.load(path, {name}=...) with what the model was made of."
                )
            state[name] = self._code[name]
            self.used.add(name)
        _restore(found, state)
        return found


def _restore(found: Any, state: Any) -> None:
    if not isinstance(state, dict):
        raise EncodingError("an object's state is not a dictionary")
    if lacking := [name for name in _stated_parts(type(found)) if name not in state]:
        raise LayoutError(f"the part {quoted(lacking[0])} of {type(found).__name__}")
    if hasattr(found, "__setstate__"):
        found.__setstate__(state)
    else:
        found.__dict__.update(state)


def _stated_parts(cls: type[Any]) -> list[str]:
    """What every instance of a class has, by the class itself; without it, it fails later."""
    if cls.__module__.partition(".")[0] != "accord" or "__setstate__" in vars(cls):
        return []
    if issubclass(cls, BaseEstimator):
        return list(cls._get_param_names())
    return [part.name for part in fields(cls) if part.init] if is_dataclass(cls) else []


def _number(text: Any) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise EncodingError(f"it holds a number {quoted(text)}")
    return float(text)


def _dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or len(name) > 4:
        raise EncodingError(f"it holds a number type {quoted(name)}")
    found = np.dtype(name)
    if found.kind not in "biuf":
        raise EncodingError(f"it holds a number type {quoted(name)}")
    return found


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise EncodingError(f"it holds a count {quoted(value)}")
    return value
