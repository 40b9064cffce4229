"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.crossfit import LeaderboardEntry
from accord.portfolio.regressor import HeldOut, PortfolioRegressor

__all__ = ["HeldOut", "LeaderboardEntry", "PortfolioRegressor"]
