"""
Tolerances and units
====================

A tolerance ε says when model and data count as agreeing. It is part of the question, so it is
stated in the unit of the target.
"""

import numpy as np

from accord import BVMRegressor

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (200, 1))  # hours
y = 20 + 3 * X[:, 0] + rng.normal(0, 1, 200)  # °C

# %%
# A number is in the unit of the target; text with a percent sign is a share of its range.

half_degree = BVMRegressor(tolerance=0.5, random_state=0).fit(X, y)
one_percent = BVMRegressor(tolerance="1%", random_state=0).fit(X, y)
print(f"{half_degree.tolerance_:.2f} °C, {one_percent.tolerance_:.2f} °C")

# %%
# Change the unit, and the tolerance changes with it: in °F half a degree Celsius is 0.9. The
# prediction is the same, in the other unit.

fahrenheit = BVMRegressor(tolerance=0.9, random_state=0).fit(X, 32 + 1.8 * y)
celsius, other = half_degree.predict([[5.0]]), fahrenheit.predict([[5.0]])
print(f"{celsius[0]:.2f} °C, and {(other[0] - 32) / 1.8:.2f} °C by way of °F")

# %%
# If instruments differ, give each row its own tolerance.

tolerance = np.where(X[:, 0] < 5, 0.2, 1.0)  # a better thermometer in the morning
model = BVMRegressor(random_state=0).fit(X, y, y_tolerance=tolerance)
print(model.predict_interval([[2.0], [8.0]], coverage=0.9).round(1))

# %%
# Nothing to state? The default, ``tolerance="local"``, is 0 where there are data and grows where
# there are none. ``accord fit --tolerance 0.5`` and ``--tolerance-column`` do the same from the
# command line.
