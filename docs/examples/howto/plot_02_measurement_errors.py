"""
Measurement errors and rounding
===============================

Two things are often known about a target: the error of the instrument, and the step to which it
was rounded. Both can be given to the model.
"""

import numpy as np

from accord import BVMRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (400, 1))
quantity = np.sin(3 * X[:, 0]) + rng.normal(0, 0.1, 400)  # what varies by itself
measured = quantity + rng.normal(0, 0.3, 400)  # what the instrument adds

# %%
# **An error that is known**, as a standard deviation per row. The prediction is then of the
# quantity itself and not of the next reading, so that its deviation should come near 0.1.

reading = BVMRegressor(tolerance=0, epochs=150, random_state=0).fit(X, measured)
itself = BVMRegressor(tolerance=0, epochs=150, random_state=0)
itself.fit(X, measured, y_std=np.full(400, 0.3))
for name, model in {"the next reading": reading, "the quantity": itself}.items():
    _, std = model.predict(X, return_std=True)
    print(f"{name}: σ = {std.mean():.2f}")

# %%
# **Rounding.** A value rounded to steps of 0.5 is known within 0.25, which is a tolerance.

rounded = np.round(measured * 2) / 2
model = BVMRegressor(tolerance=0.25, epochs=150, random_state=0).fit(X, rounded)
_, std = model.predict(X, return_std=True)
print(f"from rounded values: σ = {std.mean():.2f}; it was {np.hypot(0.1, 0.3):.2f}")

# %%
# :class:`~accord.portfolio.PortfolioRegressor` notices steps in the target by itself.
