"""
Recalibrate a model that you have
=================================

A model that predicts a mean and a deviation can be kept, and its intervals repaired on rows that it
has not seen.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from accord import Recalibrated
from accord.metrics import coverage, interval_width

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (600, 1))
y = np.sin(X[:, 0]) + 0.2 * rng.standard_t(2, 600)  # heavy tails
train, calibrate, test = slice(0, 200), slice(200, 400), slice(400, 600)
process = GaussianProcessRegressor(RBF() + WhiteKernel(), random_state=0)
process.fit(X[train], y[train])

# %%
# ``cv="prefit"`` keeps the model as it is and uses all rows for calibration.

for method in ("variance", "isotonic", "conformal"):
    model = Recalibrated(process, method=method, cv="prefit", random_state=0)
    interval = model.fit(X[calibrate], y[calibrate]).predict_interval(X[test], coverage=0.8)
    inside = coverage(y_true=y[test], interval=interval)
    width = interval_width(y_true=y[test], interval=interval)
    print(f"{method}: {inside:.0%} inside, mean width {width:.2f}")

# %%
# And before:

mean, std = process.predict(X[test], return_std=True)
interval = np.column_stack([mean - 1.2816 * std, mean + 1.2816 * std])
inside = coverage(y_true=y[test], interval=interval)
width = interval_width(y_true=y[test], interval=interval)
print(f"as it was: {inside:.0%} inside, mean width {width:.2f}")

# %%
# ``"conformal"`` guarantees its coverage for rows of the same kind; ``"weighted-conformal"`` also
# under a shift of the features towards rows that you give it (``fit(X_new=...)``).
