"""Map a function over many items: in this process, in several processes, or on a Dask cluster.

Here is how work is shared out, and nothing about the work itself. `protocol` is the interface; `serial`, `processes`
and `dask` implement it; `assignments` and `dask_session` are parts of `dask`; `cluster` connects to a cluster.
"""

from touchstone.workers.protocol import WorkerDiedError, WorkerRefusedError, Workers, WorkerState

__all__ = ["WorkerDiedError", "WorkerRefusedError", "WorkerState", "Workers"]
