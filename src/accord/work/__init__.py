"""Long work in units: where they are done, and where what is done is kept.

A unit is a pure function of its arguments: the same wherever and whenever it runs. So the units of
a fit, a comparison or a study may be done in this process (:class:`InProcess`), by others of this
machine (:class:`Processes`) or by the workers of a Dask cluster (:class:`OnCluster`), and those
that are done may be kept (:class:`Checkpoint`) for a run that goes on where another was stopped.
The result is the same.
"""

from accord.work.cluster import LostSchedulerError, OnCluster, connected
from accord.work.workers import (
    Checkpoint,
    Done,
    InProcess,
    Processes,
    Workers,
    carry_out,
    digest,
    kept_in,
    local_workers,
    workers_of,
)

__all__ = [
    "Checkpoint",
    "Done",
    "InProcess",
    "LostSchedulerError",
    "OnCluster",
    "Processes",
    "Workers",
    "carry_out",
    "connected",
    "digest",
    "kept_in",
    "local_workers",
    "workers_of",
]
