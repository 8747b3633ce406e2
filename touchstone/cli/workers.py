"""Commands about workers on a Dask cluster: `start` some on this machine, and `check` those of a cluster."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from touchstone.cli.console import show_progress

commands = typer.Typer()
worker_commands = typer.Typer(help="Validate on a Dask cluster: try one here, or check yours.", no_args_is_help=True)
commands.add_typer(worker_commands, name="workers")


@worker_commands.command()
def start(
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1024, help="How many workers.")] = 2,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the scheduler, on loopback only.")] = 8786,
) -> None:
    """Start a scheduler and workers on this machine, for you alone (TLS), until Ctrl-C."""
    import json
    import signal
    import threading

    from touchstone.publish.local_server import listen
    from touchstone.workers.cluster import LOOPBACK, local_cluster

    listen(LOOPBACK, port).close()
    stopped = threading.Event()
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, lambda *_: stopped.set())
    with local_cluster(count, port) as settings:
        print(f"{count} workers at {settings.address}; in the configuration of an evaluation:")
        print(f'  "workers": {json.dumps({"kind": "dask", "address": settings.address})}')
        print("Ctrl-C stops them", flush=True)
        stopped.wait()


@worker_commands.command()
def check(
    address: Annotated[str | None, typer.Argument(help="Address of the scheduler, such as tls://host:8786.")] = None,
    config: Annotated[Path | None, typer.Option(help="Use the workers and validators of this configuration.")] = None,
) -> None:
    """List the workers of a cluster: accepted, or refused and why. Exits with 1 if one is refused or there is none."""
    from pydantic import ValidationError

    from touchstone.config import load_config
    from touchstone.config.validation import ValidationSettings
    from touchstone.config.workers import WorkerSettings
    from touchstone.errors import TouchstoneError
    from touchstone.text import visible
    from touchstone.validation.cluster import check_cluster

    settings, workers = ValidationSettings(), None
    if config is not None:
        loaded = load_config(config)
        settings, workers = loaded.validation, loaded.worker_settings
    if address is not None:
        try:
            tls = workers.tls if workers and address.startswith("tls://") else None
            workers = WorkerSettings(kind="dask", address=address, tls=tls)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise TouchstoneError(f"{address}: {reason}") from None
    if workers is None or workers.kind != "dask":
        raise TouchstoneError("give the address of a scheduler, or a --config whose 'workers' names one")
    if not workers.uses_tls:
        danger = "whoever can connect runs programs as the user of its workers; docs/scale.md says how to use TLS"
        print(f"warning: {workers.address} has no TLS: {danger}", file=sys.stderr)
    with show_progress("trying every worker"):
        found = check_cluster(workers, settings)
    for place, (name, refused) in found.items():
        print(visible(f"{name} at {place}: {'accepted' if refused is None else f'refused: {refused}'}"))
    if not found:
        print(f"{workers.address}: the cluster has no worker; start some with `dask worker {workers.address}`")
    raise typer.Exit(int(not found or any(refused for _, refused in found.values())))
