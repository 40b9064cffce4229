"""The methods by name: those of this library, and others where they are installed.

To add one, write an entry of ``METHODS``: a name, how it is trained, how it is made from a seed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol, Self, final

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from accord._files import OptionError
from accord._types import Floats
from accord._wording import listed, near_matches, quoted
from accord.agreement import parse_rule
from accord.distributions import Decomposed, Distribution, Normal
from accord.estimators import (
    BVMRegressor,
    DeepEnsembleRegressor,
    EvidentialRegressor,
    MCDropoutRegressor,
    MSEEnsembleRegressor,
    PBPRegressor,
    check_tolerance,
)
from accord.portfolio import PortfolioRegressor
from accord.tabular import TableRegressor

# A method that states no uncertainty at all would have no likelihood.
_SMALLEST_SHARE = 1e-6
# Boosting holds out so much of its rows, and stops after so many rounds that are no better on them.
_INNER_SHARE, _PATIENCE = 0.1, 50
# Members of CatBoost's virtual ensemble, its own number.
_VIRTUAL = 10
_OF_NETWORKS = ("hidden", "epochs")
_OF_BVM = ("tolerance", "rule", "predictive", "family", *_OF_NETWORKS)


class Regressor(Protocol):
    """What a method must be able to do."""

    def fit(self, X: Floats, y: Floats) -> object: ...
    def predict_dist(self, X: Floats) -> Distribution: ...


@dataclass(frozen=True)
class Method:
    """A method by name: how it is made from a seed, and the package that it needs.

    ``short`` is what the command calls it, by default the name in small letters; ``options`` are
    the settings that :func:`table_model` has for it. Only the portfolio is many units of work,
    which can be kept one by one and done by others.
    """

    name: str
    about: str
    make: Callable[[int], Regressor]
    package: str | None = None
    short: str = ""
    options: tuple[str, ...] = ()
    is_portfolio: bool = False

    @property
    def key(self) -> str:
        return self.short or self.name.casefold().replace(" ", "-")

    @property
    def installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


class _Boosting(ABC):
    """Boosted trees behind this library's interface, cut at the round that is best on inner rows.

    They see standardised features and targets: CatBoost begins with a variance of 1, whatever the
    targets' units, and rounds features to 32 bits.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def _learn(self, X: Floats, X_inner: Floats, y: Floats, y_inner: Floats) -> None: ...

    @abstractmethod
    def _standard(self, X: Floats) -> Distribution:
        """What is predicted of standardised targets."""

    def fit(self, X: Floats, y: Floats) -> Self:
        self._scaler = StandardScaler().fit(X)
        self._center, self._scale = float(np.mean(y)), float(np.std(y)) or 1.0
        features, targets = self._scaler.transform(X), (y - self._center) / self._scale
        parts = train_test_split(features, targets, test_size=_INNER_SHARE, random_state=self.seed)
        self._learn(*parts)
        return self

    def predict_dist(self, X: Floats) -> Distribution:
        return self._standard(self._scaler.transform(X)).moved(self._center, self._scale)


@final
class NGBoost(_Boosting):
    """NGBoost's normal distributions, after at most its own 500 rounds."""

    def __init__(self, seed: int) -> None:
        from ngboost import NGBRegressor

        super().__init__(seed)
        # its own tree, seeded: equal splits are otherwise drawn from the global generator
        tree = DecisionTreeRegressor(max_depth=3, random_state=seed)
        self.model = NGBRegressor(Base=tree, random_state=seed, verbose=False)

    def _learn(self, X: Floats, X_inner: Floats, y: Floats, y_inner: Floats) -> None:
        self.model.fit(X, y, X_inner, y_inner, early_stopping_rounds=_PATIENCE)

    def _standard(self, X: Floats) -> Distribution:
        # the best round is counted from 0, ``max_iter`` is a number of rounds
        found = self.model.pred_dist(X, max_iter=self.model.best_val_loss_itr + 1)
        return Normal(found.loc, np.maximum(found.scale, _SMALLEST_SHARE))


@final
class CatBoost(_Boosting):
    """CatBoost's RMSEWithUncertainty and its virtual ensemble, after at most its own 1,000 rounds.

    The virtual ensemble is made of parts of the trees, two for each of its members at least.
    """

    def __init__(self, seed: int) -> None:
        from catboost import CatBoostRegressor

        super().__init__(seed)
        self.model = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            posterior_sampling=True,
            best_model_min_trees=2 * _VIRTUAL,
            random_seed=seed,
            verbose=False,
            allow_writing_files=False,
            thread_count=1,
        )

    def _learn(self, X: Floats, X_inner: Floats, y: Floats, y_inner: Floats) -> None:
        self.model.fit(X, y, eval_set=(X_inner, y_inner), early_stopping_rounds=_PATIENCE)

    def _standard(self, X: Floats) -> Distribution:
        found = self.model.virtual_ensembles_predict(
            X, prediction_type="TotalUncertainty", virtual_ensembles_count=_VIRTUAL, thread_count=1
        )
        mean, knowledge, noise = np.asarray(found, dtype=np.float64).T
        total = np.sqrt(np.maximum(knowledge + noise, _SMALLEST_SHARE**2))
        return Decomposed(Normal(mean, total), np.sqrt(np.minimum(knowledge, total**2)))


METHODS = (
    Method(
        "Portfolio",
        "what 'accord fit' trains by default, here with quick effort: several kinds of model, "
        "cross-fitted, blended and calibrated on held-out rows",
        lambda s: PortfolioRegressor(effort="quick", random_state=s),
        options=("effort", "time_budget", "tolerance", "bounds"),
        is_portfolio=True,
    ),
    Method(
        "BVM, local",
        "five networks trained by likelihood, predicted with a tolerance that grows away from the "
        "data, chosen on held-out rows (not in the paper); not calibrated",
        lambda s: BVMRegressor(random_state=s),
        short="bvm",
        options=_OF_BVM,
    ),
    Method(
        "BVM, as printed",
        "the paper's method and its settings of Table 1: five networks trained to agree within 1 % "
        "of the range, predicted with their own mean and variance; its small learning rate leaves "
        "small tables half trained",
        lambda s: BVMRegressor.preset("table1", random_state=s),
        short="bvm-paper",
        options=_OF_BVM,
    ),
    Method(
        "Deep ensemble",
        "five networks trained by Gaussian likelihood; no adversarial training",
        lambda s: DeepEnsembleRegressor(random_state=s),
        options=_OF_NETWORKS,
    ),
    Method(
        "MSE ensemble",
        "networks trained by squared error; their spread is the uncertainty",
        lambda s: MSEEnsembleRegressor(random_state=s),
        options=_OF_NETWORKS,
    ),
    Method(
        "MC dropout",
        "one network with dropout at training and at prediction",
        lambda s: MCDropoutRegressor(random_state=s),
        options=_OF_NETWORKS,
    ),
    Method(
        "PBP",
        "probabilistic backpropagation: one network, moments instead of weights",
        lambda s: PBPRegressor(random_state=s),
        options=_OF_NETWORKS,
    ),
    Method(
        "Evidential",
        "networks that predict a distribution over Gaussians",
        lambda s: EvidentialRegressor(random_state=s),
        options=_OF_NETWORKS,
    ),
    Method(
        "NGBoost",
        "natural gradient boosting, its own settings, stopped early on a tenth of its rows",
        NGBoost,
        package="ngboost",
    ),
    Method(
        "CatBoost",
        "boosted trees, RMSEWithUncertainty, a virtual ensemble of ten, stopped early on a tenth "
        "of its rows",
        CatBoost,
        package="catboost",
    ),
)


def method_named(name: str) -> Method:
    """The method that the command or a report calls by this name.

    >>> method_named("bvm-paper").name, method_named("Deep ensemble").key
    ('BVM, as printed', 'deep-ensemble')
    """
    known = {word.casefold(): m for m in METHODS for word in (m.key, m.name)}
    if name.casefold() in known:
        return known[name.casefold()]
    keys = [method.key for method in METHODS]
    near = near_matches(name, [*keys, *(method.name for method in METHODS)])
    hint = f" Did you mean {' or '.join(map(quoted, near))}?" if near else ""
    raise OptionError(f"method must be one of {listed(keys, limit=20)}, got {quoted(name)}.{hint}")


def table_model(
    method: str = "portfolio", *, random_state: int = 0, **settings: Any
) -> TableRegressor:
    """A model of tables in which a method, by its name, is what learns.

    ``settings`` are those of :class:`TableRegressor`, and those that are ``options`` of a method,
    None to leave them out; one that this method does not have is refused.

    >>> table_model("deep-ensemble", epochs=3, coverage=0.9).engine.epochs
    3
    """
    known = {name for each in METHODS for name in each.options}
    of_table = {name: value for name, value in settings.items() if name not in known}
    if settings.get("bounds", "detect") is None:  # no bounds: a table's setting, of any method
        of_table["bounds"] = None
    unset = (None, "detect")
    given = {n: value for n, value in settings.items() if n in known and value not in unset}
    found = method_named(method)
    _check_options(found, given)
    if not found.is_portfolio:
        made: Any = found.make(random_state)
        # a rule takes the place of a preset's tolerance
        stated = {"tolerance": "local"} if "rule" in given else {}
        given = {"engine": made.set_params(**stated, **given)}
    return TableRegressor(**of_table, **given, random_state=random_state)


def _check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Refuse a method that cannot be saved, and options that it does not have."""
    if method.package is not None:
        raise OptionError(
            f"method must be one of accord's own to be saved, got {quoted(method.key)}. "
            "'accord compare' has it beside the others."
        )
    for name in options:
        if name not in method.options:
            others = [other.key for other in METHODS if name in other.options]
            raise OptionError(
                f"{name} must be an option of the method, got one for {quoted(method.key)}, which "
                f"has {listed(method.options, limit=9)}. Leave it out, or use a method that has "
                f"it: {listed(others, limit=20)}."
            )
    if "rule" in options and "tolerance" in options:
        raise OptionError(
            "rule and tolerance must not both be given, got both. Say all in the rule, as in "
            "'within 0.5 or error inside 1.9 2.1'."
        )
    try:  # a mistake is best found before a table is read
        if "rule" in options:
            parse_rule(options["rule"])
        if "tolerance" in options and not method.is_portfolio:
            check_tolerance(options["tolerance"])
        elif "tolerance" in options:
            check_tolerance(options["tolerance"], words=("choose",))
    except ValueError as error:
        raise OptionError(str(error)) from None
