"""How far a row is from the data that a model has learnt from, and what follows from that."""

from accord.trust.proximity import UNUSUAL_SHARE, Growth, Neighbors, Proximity
from accord.trust.score import TrustScore

__all__ = ["UNUSUAL_SHARE", "Growth", "Neighbors", "Proximity", "TrustScore"]
