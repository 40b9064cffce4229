"""
A density smoothed by its tolerance
===================================

To train within ε is to maximise the likelihood of the prediction smoothed by a box of half-width
ε. These are the densities that result.
"""

import numpy as np

from accord import Normal, Smoothed, plots

y = np.linspace(-5, 5, 400)
fig, (ax,) = plots.figure(width=7.2, height=3.8)
for k, tolerance in enumerate([0.01, 1.0, 2.0, 3.0]):
    density = Smoothed(Normal(0.0, 0.6), tolerance).pdf(y[:, None])
    ax.plot(y, np.ravel(density), color=plots.PALETTE[k], label=f"ε = {tolerance:g}")
ax.set(xlabel="y", ylabel="density", title="N(0, 0.6²), smoothed by its tolerance")
plots.legend(ax)
