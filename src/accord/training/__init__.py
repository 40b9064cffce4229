"""Networks and how they are trained: a stack of them, each with its own rows, shuffles and seed.

A :class:`Task` is what one ensemble needs: scaled rows, per-row columns for the loss, and one seed
per member. :func:`train` lays the members of all tasks along one axis and trains them together;
members, splits, folds and tolerances are all just more members.

Ragged tasks and short last batches use one mechanism: index matrices padded with rows of weight 0.
"""

from accord.training.modules import (
    ModuleDesign,
    ModuleStack,
    fixed_values,
    made,
    module_outputs,
    trained_values,
)
from accord.training.objectives import (
    VARIANCE_FLOOR,
    AgreementObjective,
    ByAutograd,
    CensoredLoss,
    CensoredMixture,
    GaussianLikelihood,
    Heads,
    MeanHead,
    MixtureObjective,
    RuleLoss,
    ShareObjective,
    SquaredError,
    VarianceHead,
)
from accord.training.probabilistic_backprop import (
    Posterior,
    initial_posterior,
    output_moments,
    train_pbp,
)
from accord.training.stack import (
    ACTIVATIONS,
    Activation,
    Architecture,
    StackedMLP,
    raw_outputs,
)
from accord.training.tasks import (
    Chunk,
    Columns,
    Design,
    EpochReport,
    Listener,
    Networks,
    Objective,
    Optimizer,
    Scaling,
    Schedule,
    Settings,
    StoppingRows,
    Task,
    Trained,
)
from accord.training.train import DivergedError, train, train_on_stream

__all__ = [
    "ACTIVATIONS",
    "VARIANCE_FLOOR",
    "Activation",
    "AgreementObjective",
    "Architecture",
    "ByAutograd",
    "CensoredLoss",
    "CensoredMixture",
    "Chunk",
    "Columns",
    "Design",
    "DivergedError",
    "EpochReport",
    "GaussianLikelihood",
    "Heads",
    "Listener",
    "MeanHead",
    "MixtureObjective",
    "ModuleDesign",
    "ModuleStack",
    "Networks",
    "Objective",
    "Optimizer",
    "Posterior",
    "RuleLoss",
    "Scaling",
    "Schedule",
    "Settings",
    "ShareObjective",
    "SquaredError",
    "StackedMLP",
    "StoppingRows",
    "Task",
    "Trained",
    "VarianceHead",
    "fixed_values",
    "initial_posterior",
    "made",
    "module_outputs",
    "output_moments",
    "raw_outputs",
    "train",
    "train_on_stream",
    "train_pbp",
    "trained_values",
]
