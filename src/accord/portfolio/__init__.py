"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.folds import Part, fold_count, random_parts
from accord.portfolio.regressor import Entry, HeldOut, PortfolioRegressor
from accord.portfolio.residuals import HeldOutRows, Residuals

__all__ = [
    "Entry",
    "HeldOut",
    "HeldOutRows",
    "Part",
    "PortfolioRegressor",
    "Residuals",
    "fold_count",
    "random_parts",
]
