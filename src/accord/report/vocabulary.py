"""The figures that reports show, with their names and what they mean."""

FIGURE_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("rows", "rows", "held-out rows with an observed target", "count"),
    ("coverage", "coverage", "share inside their interval", "percent"),
    ("typical_width", "typical width", "median width of an interval, in target units", "number"),
    ("rmse", "RMSE", "root mean squared error of the mean, in target units", "number"),
    ("mae", "MAE", "mean absolute error of the mean, in target units", "number"),
    ("r2", "R²", "share of the target's variance explained", "number"),
    ("nll", "NLL", "negative log-likelihood; lower is better", "number"),
    (
        "crps",
        "CRPS",
        "continuous ranked probability score, in target units; lower is better",
        "number",
    ),
    ("ece", "ECE", "mean gap between stated and observed coverage", "percent"),
    ("mce", "MCE", "largest such gap", "percent"),
)

VALIDATION_ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("agreement", "agreement", "probability of agreement under the rule", "number"),
    ("bias", "bias", "mean of predicted minus observed", "number"),
    ("interval_coverage", "interval coverage", "share inside the intervals given", "percent"),
    (
        "interval_score",
        "interval score",
        "width plus penalty for misses; lower is better",
        "number",
    ),
)
