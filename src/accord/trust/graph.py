"""The distance to the training rows, in an exported graph."""

import numpy as np

from accord.export import Value, affine, states
from accord.trust.proximity import Growth, Proximity


@states(Proximity)
def state_proximity(near: Proximity, x: Value) -> Value:
    """Mean distance to the nearest references; (N, d) → (N, 1).

    A matrix product shows which are nearest. Their distances are taken again by differences, since
    products lose the digits of small ones.
    """
    rows, k = near.references_, near.n_neighbors_
    if not rows.shape[1]:
        return 0.0 * x.sum(1, keep=True)
    z = affine(x.take(near.varying_, 1), near.center_[near.varying_], near.scale_)
    products = z @ x.graph.constant(rows.T)
    # without the row's own length, which is the same for all references
    nearest = x.graph.top(np.square(rows).sum(axis=1)[None] - 2 * products, k)
    apart = x.graph.constant(rows).take(nearest, 0) - z.wider(1)
    return apart.square().sum(2).sqrt().sum(1, keep=True) / k


@states(Growth)
def state_growth(growth: Growth, x: Value) -> Value:
    """g before it is cut off at 0; (N, d) → (N, 1)."""
    return (state_proximity(growth.proximity_, x) - float(growth.start_)) / float(growth.width_)
