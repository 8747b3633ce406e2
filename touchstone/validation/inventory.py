"""What of validation works on this machine: sandboxes by trying them, validators by their probes."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from touchstone.config import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.registry import DEFAULT_VALIDATORS, VALIDATORS, Station
from touchstone.validation.sandbox.probing import BACKENDS, INSTALL, choose_sandbox, try_backend

_FIDELITY = {"hcl": "static or static+schema", "command": "as configured"}


@dataclass(frozen=True)
class Entry:
    """One sandbox or validator, whether it is usable, and what to do where it is not."""

    kind: str
    name: str
    usable: bool
    fidelity: str
    detail: str


def take_inventory(settings: ValidationSettings) -> list[Entry]:
    """Sandboxes first, then validators on the best of them."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        scratch = Path(folder)
        entries = []
        for backend in (kind() for kind in BACKENDS):
            trouble = try_backend(backend, scratch).trouble
            detail = (
                "holds" if trouble is None else f"{trouble}; {INSTALL}" if backend.name == "bubblewrap" else trouble
            )
            entries.append(Entry("sandbox", backend.name, trouble is None, "", detail))
        try:
            sandbox = choose_sandbox(scratch, settings.sandbox, settings.unsandboxed)
        except TouchstoneError as error:
            return [*entries, *(Entry("validator", name, False, "", str(error)) for name in VALIDATORS)]
        station = Station(sandbox, settings)
        try:
            return [*entries, *(_validator(station, name, settings) for name in VALIDATORS)]
        finally:
            station.close()


def _validator(station: Station, name: str, settings: ValidationSettings) -> Entry:
    languages = sorted(
        language for language, chosen in {**DEFAULT_VALIDATORS, **settings.validators}.items() if chosen == name
    )
    used = f"used for {', '.join(languages)}; " if languages else ""
    try:
        found = station.validator(name).probe()
    except TouchstoneError as error:
        return Entry("validator", name, False, _FIDELITY.get(name, "full"), str(error))
    detail = found.detail if found.usable or not found.remedy else f"{found.detail}; {found.remedy}"
    return Entry("validator", name, found.usable, _FIDELITY.get(name, "full"), used + detail)
