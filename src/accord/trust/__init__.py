"""How far a row is from the data that a model has learnt from, and what follows from that."""

from accord.trust.proximity import Growth, Neighbors, Proximity
from accord.trust.score import TrustScore

__all__ = ["Growth", "Neighbors", "Proximity", "TrustScore"]
