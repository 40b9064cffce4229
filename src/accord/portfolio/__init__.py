"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.crossfit import LeaderboardEntry
from accord.portfolio.judged import JudgedModel
from accord.portfolio.regressor import HeldOut, PortfolioRegressor

__all__ = ["HeldOut", "JudgedModel", "LeaderboardEntry", "PortfolioRegressor"]
