"""Every estimator keeps scikit-learn's contract."""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from accord import (
    BVMRegressor,
    DeepEnsembleRegressor,
    EvidentialRegressor,
    JointBVMRegressor,
    MCDropoutRegressor,
    MSEEnsembleRegressor,
    PBPRegressor,
)
from accord.portfolio import PortfolioRegressor

# Few epochs keep the checks quick; the one that asks for a good fit sets none of its own.
ESTIMATORS = [
    BVMRegressor(epochs=20, random_state=0),
    DeepEnsembleRegressor(epochs=20, random_state=0),
    MSEEnsembleRegressor(epochs=20, random_state=0),
    MCDropoutRegressor(epochs=20, random_state=0),
    PBPRegressor(epochs=5, random_state=0),
    EvidentialRegressor(epochs=20, random_state=0),
    JointBVMRegressor(epochs=20, random_state=0),
    # time for the first recipe only
    PortfolioRegressor(effort="quick", time_budget=1e-3, random_state=0),
]

NOT_EQUIVALENT = (
    "training is stochastic: a row of weight 2 and the row twice fall into different batches"
)
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": NOT_EQUIVALENT,
    "check_sample_weight_equivalence_on_sparse_data": NOT_EQUIVALENT,
}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXPECTED_FAILURES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=FutureWarning)
        check(estimator)
