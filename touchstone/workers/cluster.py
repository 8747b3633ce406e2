"""Connect to a Dask cluster, and start one on this machine. Everything that Dask raises becomes one line."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from touchstone.config import TlsFiles, WorkerSettings
from touchstone.errors import TouchstoneError, UnreachableError
from touchstone.locations import cache_folder

if TYPE_CHECKING:
    from distributed import Client, Security

LOOPBACK = "127.0.0.1"
_CONNECT_SECONDS = 15
# Scheduler and workers have pages, without TLS, that show tasks and logs.
_NO_PAGES: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


def connect(settings: WorkerSettings) -> "Client":
    """A client of the cluster that the configuration names."""
    _require_dask()
    from distributed import Client, Security

    security = None
    if settings.uses_tls:
        files = tls_files(settings)
        for file in (files.ca_file, files.cert_file, files.key_file):
            if not file.is_file():
                hint = "" if settings.tls else f": none of your `touchstone workers start` runs at {settings.address}"
                raise TouchstoneError(f"workers.tls: {file} does not exist{hint}")
        security = Security(
            tls_ca_file=str(files.ca_file),
            tls_client_cert=str(files.cert_file),
            tls_client_key=str(files.key_file),
            require_encryption=True,
        )
    try:
        with warnings.catch_warnings():
            # What must agree is checked on every worker; Dask's own table of versions says nothing to a user.
            warnings.simplefilter("ignore")
            return Client(
                settings.address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False, name="touchstone"
            )
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UnreachableError(
            f"{settings.address}: no Dask scheduler answers ({reason}); start one, or correct workers.address"
        ) from None


def tls_files(settings: WorkerSettings) -> TlsFiles:
    """The files of the configuration; without any, those of the cluster on this machine."""
    return settings.tls or _local_files(str(settings.address).rpartition(":")[2])


def running_workers(client: "Client") -> dict[str, str]:
    """The names of the cluster's workers by address, without those that are about to leave."""
    found = _ask_scheduler(client, "identity", n_workers=-1)
    usable = ("running", "paused", "init")
    return {address: str(about["name"]) for address, about in found["workers"].items() if about["status"] in usable}


def fetched(client: "Client", keys: Sequence[str]) -> dict[str, Any]:
    """The results of finished tasks, by key; without those whose worker has died since.

    `Future.result` would wait until the task was done again, by a worker that is gone.
    """
    while keys:
        answer = _ask_scheduler(client, "gather", keys=keys)
        if answer["status"] == "OK":
            return dict(answer["data"])
        keys = [key for key in keys if key not in answer["keys"]]
    return {}


def _ask_scheduler(client: "Client", what: str, **arguments: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = client.sync(getattr(client.scheduler, what), **arguments)
    except (OSError, RuntimeError, AttributeError) as error:
        raise UnreachableError(
            f"the connection to the Dask scheduler was lost ({type(error).__name__}); "
            "run again: what was validated is kept"
        ) from None
    return answer


@contextmanager
def local_cluster(count: int, port: int) -> Iterator[WorkerSettings]:
    """A scheduler and workers on this machine's loopback, which only this user can use; yields how to connect."""
    _require_dask()
    import dask
    from distributed import LocalCluster

    with local_security(port) as security:
        # Its profiler looks at every worker a hundred times a second, and nobody looks at the profile.
        with dask.config.set({"distributed.worker.profile.enabled": False}):
            cluster = LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                scheduler_port=port,
                dashboard_address=None,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
                security=security,
            )
        with cluster:
            yield WorkerSettings(kind="dask", address=str(cluster.scheduler_address), tls=_local_files(port))


@contextmanager
def local_security(port: int) -> Iterator["Security"]:
    """TLS for a cluster on this machine, where every user can connect to loopback.

    The temporary key is in memory and, until the end, in a file that only this user can read: the clients' way in.
    """
    import dask
    from distributed import Security

    try:
        security = Security.temporary()
    except ImportError:
        raise TouchstoneError("TLS needs cryptography; install touchstone[dask]") from None
    files = _local_files(port)
    try:
        for file, text in ((files.ca_file, security.tls_ca_file), (files.key_file, security.tls_client_key)):
            file.unlink(missing_ok=True)
            file.touch(0o600, exist_ok=False)
            file.write_text(str(text))
        with dask.config.set(_NO_PAGES):
            yield security
    finally:
        for file in (files.ca_file, files.key_file):
            file.unlink(missing_ok=True)


def _local_files(port: int | str) -> TlsFiles:
    """The certificate and key of the cluster on a port of this machine, while it runs."""
    folder = cache_folder()
    if folder is None:
        raise TouchstoneError(
            "the folder touchstone in ~/.cache, or in XDG_CACHE_HOME, cannot keep a key: it must be yours, writable by "
            "nobody else, and no link"
        )
    certificate = folder / f"workers-{port}.pem"
    return TlsFiles(ca_file=certificate, cert_file=certificate, key_file=certificate.with_suffix(".key"))


def _require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise TouchstoneError("Dask is not installed; install touchstone[dask]") from None
