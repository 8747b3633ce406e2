"""Workers on SLURM, as jobs of dask-jobqueue. Keep it running, on a node that the others reach (docs/scale.md)."""

import time

from dask_jobqueue import SLURMCluster

cluster = SLURMCluster(
    queue="normal",
    cores=16,
    processes=16,  # one worker per core, with one thread
    memory="32GB",
    walltime="04:00:00",
    scheduler_options={"port": 8786},
    protocol="tls://",
    shared_temp_directory="~/.dask-certificates",  # temporary certificates, which workers must be able to read
)
cluster.scale(jobs=20)
print(cluster.scheduler_address)
while True:
    time.sleep(60)
