"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.regressor import Entry, HeldOut, PortfolioRegressor

__all__ = ["Entry", "HeldOut", "PortfolioRegressor"]
