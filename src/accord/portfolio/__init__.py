"""The default regressor and its parts: recipes, models, selection, calibration."""

from accord.portfolio.blanks import Blank, Blanks, split_blanks
from accord.portfolio.crossfit import LeaderboardEntry
from accord.portfolio.encoding import Bounds, check_contained, checked_bounds, ends_of
from accord.portfolio.folds import HeldOut, Part, fold_count, random_parts, time_parts
from accord.portfolio.judged import JudgedModel
from accord.portfolio.recipes import EFFORTS, Effort
from accord.portfolio.regressor import PortfolioRegressor
from accord.portfolio.residuals import HeldOutRows, Residuals
from accord.portfolio.rows import EncodedTable
from accord.portfolio.streamed import MoreRows, record_type

__all__ = [
    "EFFORTS",
    "Blank",
    "Blanks",
    "Bounds",
    "Effort",
    "EncodedTable",
    "HeldOut",
    "HeldOutRows",
    "JudgedModel",
    "LeaderboardEntry",
    "MoreRows",
    "Part",
    "PortfolioRegressor",
    "Residuals",
    "check_contained",
    "checked_bounds",
    "ends_of",
    "fold_count",
    "random_parts",
    "record_type",
    "split_blanks",
    "time_parts",
]
