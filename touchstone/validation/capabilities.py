"""Which sandboxes and validators work on this machine, found by probing each of them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.validation.registry import DEFAULT_VALIDATORS, VALIDATORS, ValidatorRegistry
from touchstone.validation.sandbox.probe import BACKENDS, INSTALL, choose_sandbox, probe_backend
from touchstone.validation.terraform_choice import LANGUAGE

_TERRAFORM_USE = {
    "terraform": "terraform, where all problems initialise offline",
    "hcl": "terraform, where that cannot",
}
_FIDELITY = {"hcl": "static or static+schema", "command": "as configured"}


@dataclass(frozen=True)
class Capability:
    """One sandbox or validator: whether it is usable, and if not, what to do."""

    kind: str
    name: str
    usable: bool
    fidelity: str
    detail: str


def probe_capabilities(settings: ValidationSettings) -> list[Capability]:
    """Probe all sandboxes, then all validators in the best sandbox."""
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder:
        scratch = Path(folder)
        entries = []
        for backend in (kind() for kind in BACKENDS):
            failure = probe_backend(backend, scratch)
            detail = (
                "holds" if failure is None else f"{failure}; {INSTALL}" if backend.name == "bubblewrap" else failure
            )
            entries.append(Capability("sandbox", backend.name, failure is None, "", detail))
        try:
            sandbox = choose_sandbox(scratch, settings.sandbox, settings.unsandboxed)
        except TouchstoneError as error:
            return [*entries, *(Capability("validator", name, False, "", str(error)) for name in VALIDATORS)]
        registry = ValidatorRegistry(sandbox, settings)
        try:
            return [*entries, *(_validator(registry, name, settings) for name in VALIDATORS)]
        finally:
            registry.close()


def _validator(registry: ValidatorRegistry, name: str, settings: ValidationSettings) -> Capability:
    languages = sorted(
        language for language, chosen in {**DEFAULT_VALIDATORS, **settings.validators}.items() if chosen == name
    )
    used = f"used for {', '.join(languages)}; " if languages else ""
    if LANGUAGE not in settings.validators and name in _TERRAFORM_USE:
        used = f"used for {_TERRAFORM_USE[name]}; "
    try:
        found = registry.available(name)
    except TouchstoneError as error:
        return Capability("validator", name, False, _FIDELITY.get(name, "full"), str(error))
    detail = found.detail if found.usable or not found.remedy else f"{found.detail}; {found.remedy}"
    return Capability("validator", name, found.usable, _FIDELITY.get(name, "full"), used + detail)
