"""
Which tolerance can be claimed?
===============================

Two models of a bracket on a test rig (see :doc:`/validation`): the probability that they agree
with the measurements, by tolerance.
"""

import numpy as np

from accord import Normal, plots
from accord.validation import agreement_curve

load = np.arange(1.0, 13.0, 0.5)
rng = np.random.default_rng(0)
measured = 0.36 * load + 0.015 * load**2 + 0.03 + 0.03 * rng.normal(size=len(load))
data = Normal(measured, 0.02)
models = {"stiffening": 0.36 * load + 0.015 * load**2 + 0.03, "straight": 0.56 * load - 0.39}
tolerances = np.linspace(0.005, 0.4, 80)
fig, (ax,) = plots.figure(width=7.2, height=4)
for k, (name, values) in enumerate(models.items()):
    curve = agreement_curve(Normal(values, 0.04), data, tolerances)
    ax.plot(tolerances, curve, color=plots.PALETTE[k], label=name)
ax.axhline(0.95, color="grey", lw=0.8, ls="--")
ax.set(xlabel="tolerance ε in mm", ylabel="probability of agreement")
plots.legend(ax)
