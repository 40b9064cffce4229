"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.judged import JudgedModel
from accord.portfolio.regressor import Entry, HeldOut, PortfolioRegressor

__all__ = ["Entry", "HeldOut", "JudgedModel", "PortfolioRegressor"]
