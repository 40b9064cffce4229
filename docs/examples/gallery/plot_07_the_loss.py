"""
The loss, exactly and in series
===============================

For a single point the paper's series has a minimum at σ = ε/√3. The exact loss has none: it only
becomes flat.
"""

import numpy as np
import torch

from accord import BVMLoss, plots

sigma = np.geomspace(0.2, 3, 200)
zero, variance = torch.zeros(200), torch.tensor(sigma**2, dtype=torch.float32)
exact = BVMLoss(tolerance=1.0, density=True, reduction="none")(zero, zero, variance)
series = 0.5 * np.log(2 * np.pi * sigma**2) + 1 / (6 * sigma**2)

fig, (ax,) = plots.figure(width=7.2, height=3.8)
ax.plot(sigma, exact, color=plots.PALETTE[0], label="exact loss")
ax.plot(sigma, series, color=plots.PALETTE[1], ls="--", label="series to the order ε²")
ax.axvline(1 / np.sqrt(3), color="grey", lw=0.8, label="σ = ε/√3")
ax.set(xlabel="σ, with ε = 1", ylabel="loss at μ = t", ylim=(0.5, 2.5))
plots.legend(ax)
