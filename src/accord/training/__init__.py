"""The one training loop: a stack of networks, each with its own rows, shuffles and seed.

A :class:`Task` is what one ensemble needs: scaled rows, per-row columns for the loss, and one seed
per member. :func:`train` lays the members of all tasks along one axis and trains them together;
members, splits, folds and tolerances are all just more members.

Ragged tasks and short last batches use one mechanism: index matrices padded with rows of weight 0.
"""

from accord.training.tasks import (
    Columns,
    HeldOut,
    Listener,
    Objective,
    Optimizer,
    Progress,
    Schedule,
    Settings,
    Task,
    Trained,
)
from accord.training.train import train

__all__ = [
    "Columns",
    "HeldOut",
    "Listener",
    "Objective",
    "Optimizer",
    "Progress",
    "Schedule",
    "Settings",
    "Task",
    "Trained",
    "train",
]
