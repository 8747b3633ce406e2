"""The section `workers` of the configuration: where validation and the reading of files run."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from touchstone.config.file import Section
from touchstone.config.validation import expanded

_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}")


class TlsFiles(Section):
    """The certificates by which this machine and a cluster know each other, as PEM files."""

    ca_file: Path
    cert_file: Path
    key_file: Path


class WorkerSettings(Section):
    """Who does the work. `auto` starts processes where that pays; `count` is their number, or the most of a cluster."""

    kind: Literal["auto", "in_process", "processes", "dask"] = "auto"
    """`in_process`, `processes`, or a `dask` cluster; `auto` starts processes where that pays."""
    count: int | None = Field(None, ge=1, le=100_000)
    """Number of processes, or the most workers of a cluster that are used. By default one per core."""
    address: str | None = None
    """Address of a Dask scheduler: `tcp://host:port` or `tls://host:port`."""
    tls: TlsFiles | None = None
    """For `tls://`: the PEM files `ca_file`, `cert_file` and `key_file`; for `tls://127.0.0.1:port` by default those
    of `touchstone workers start`."""

    @model_validator(mode="after")
    def _an_address_for_a_cluster(self) -> Self:
        if (self.kind == "dask") != (self.address is not None):
            raise ValueError('kind "dask" and an address go together, such as "tcp://127.0.0.1:8786"')
        if self.address is not None and not _ADDRESS.fullmatch(self.address):
            raise ValueError(f"'{self.address}' is not an address such as tcp://127.0.0.1:8786 or tls://host:8786")
        is_local = (self.address or "").startswith("tls://127.0.0.1:")
        # The files of `touchstone workers start` are found by its port.
        if (self.tls is not None) != self.uses_tls and not is_local:
            raise ValueError("an address that starts with tls:// and the files in 'tls' go together")
        if self.kind == "in_process" and (self.count or 1) > 1:
            raise ValueError('kind "in_process" is a single worker, so count cannot be more than 1')
        return self

    @property
    def uses_tls(self) -> bool:
        """Whether the connection to a cluster is encrypted, and open to holders of its key only."""
        return (self.address or "").startswith("tls://")

    def anchored(self, base: Path) -> Self:
        """A copy with absolute paths: relative ones are resolved against `base`, the config file's folder."""
        if self.tls is None:
            return self
        files = {name: (base / expanded(path)).absolute() for name, path in self.tls}
        return self.model_copy(update={"tls": TlsFiles(**files)})
