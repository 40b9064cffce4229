"""
Several targets at once
=======================

A position has two coordinates, and an error in one often comes with an error in the other. A rule
can ask that both are right at once, and a model can know how they depend on each other.
"""

import numpy as np

from accord import AllWithin, JointBVMRegressor, NormWithin, probability_of_agreement

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (800, 2))
noise = rng.multivariate_normal([0, 0], [[1.0, 0.8], [0.8, 1.0]], 800)
y = np.c_[np.sin(2 * X[:, 0]), 3 * X[:, 1]] + [0.2, 0.5] * noise  # metres

# %%
# The tolerance of each target in its own unit: within 5 cm and within 10 cm, both at once.

model = JointBVMRegressor(tolerance=[0.05, 0.1], random_state=0).fit(X[:600], y[:600])
joint = model.predict_joint(X[600:])
print(f"correlation of the errors: {joint.correlation[:, 0, 1].mean():.2f}")

# %%
# Intervals for each target alone do not hold both at once as often as they say; a box does.


def share_inside(bounds):
    return np.mean(((y[600:] >= bounds[..., 0]) & (bounds[..., 1] >= y[600:])).all(axis=1))


print(f"both in their own intervals: {share_inside(model.predict_interval(X[600:], 0.9)):.0%}")
print(f"in the box: {share_inside(model.predict_box(X[600:], 0.9)):.0%}")

# %%
# How probable is it that a prediction is right? With both coordinates within 30 cm, or with the
# distance between prediction and position at most 30 cm:

for rule in (AllWithin(0.3), NormWithin(0.3)):
    print(probability_of_agreement(joint, y[600:], rule, random_state=0))
