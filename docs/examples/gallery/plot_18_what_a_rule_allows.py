"""
What a rule allows
==================

Rules are regions in the plane of prediction and datum, and combine like sets.
"""

import numpy as np

from accord import plots
from accord.agreement import Asymmetric, AtLeast, Within, WithinRelative

y, predicted = np.meshgrid(np.linspace(0, 10, 300), np.linspace(0, 10, 300))
rules = {
    "within 1": Within(1.0),
    "within 20 %": WithinRelative(0.2),
    "within 1, or 20 %": Within(1.0) | WithinRelative(0.2),
    "at least, and within 2": AtLeast() & Within(2.0),
    "within −0.5 +2": Asymmetric(below=0.5, above=2.0),
    "not within 1": ~Within(1.0),
}
fig, axes = plots.figure(2, 3, width=9, height=6, titles=list(rules))
for ax, rule in zip(axes, rules.values(), strict=True):
    agrees = rule(predicted.ravel(), y.ravel()).reshape(y.shape)
    ax.contourf(y, predicted, agrees, levels=[0.5, 1], colors=["#56b4e9"])
    ax.set(xlabel="datum y", ylabel="prediction ŷ", aspect="equal")
