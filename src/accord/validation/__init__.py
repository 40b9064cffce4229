"""Validation of any model against data: the classical metrics, each as a rule of agreement.

A validation metric compares something of the model with something of the data and says when the two
agree. With the probability of agreement the comparison keeps its meaning when either side is
uncertain, and metrics combine:

| metric | compared | rule |
|---|---|---|
| `squared_error` | all rows | Σ(ŷ − y)² ≤ limit |
| `probability_of_agreement` | each row | \\|ŷ − y\\| ≤ ε, or any other |
| `reliability` | the means | \\|ŷ − ȳ\\| ≤ ε, ȳ normal |
| `frequentist_interval` | the means | lower ≤ ŷ − ȳ ≤ upper, ȳ Student-t |
| `hypothesis_test` | a statistic | inside the acceptance region |
| `area_metric` | the cdfs | area ≤ limit |
| `density_distance` | the densities | distance ≤ limit |
| `bayes_factor` | each row | exact agreement |

`bvm_ratio` compares two models under any rule. `coverage_log_evidence` and `coverage_sequence` say,
batch after batch, whether intervals keep the coverage that they state.
"""

from accord.agreement import Agreement, probability_of_agreement
from accord.validation.distances import (
    AreaMetric,
    DensityDistance,
    area_metric,
    density_distance,
)
from accord.validation.errors import (
    FrequentistInterval,
    HypothesisTest,
    agreement_curve,
    frequentist_interval,
    hypothesis_test,
    mean_of,
    reliability,
    squared_error,
)
from accord.validation.evidence import (
    BVMRatio,
    bayes_factor,
    bvm_ratio,
    coverage_log_evidence,
    coverage_sequence,
    joint_log_agreement,
)

__all__ = [
    "Agreement",
    "AreaMetric",
    "BVMRatio",
    "DensityDistance",
    "FrequentistInterval",
    "HypothesisTest",
    "agreement_curve",
    "area_metric",
    "bayes_factor",
    "bvm_ratio",
    "coverage_log_evidence",
    "coverage_sequence",
    "density_distance",
    "frequentist_interval",
    "hypothesis_test",
    "joint_log_agreement",
    "mean_of",
    "probability_of_agreement",
    "reliability",
    "squared_error",
]
