"""What a module declares across its files: the names that references can resolve to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from touchstone.validation.hcl.scopes import RESOURCE_KINDS, Unit
from touchstone.validation.hcl.tree import Block, source

BUILTIN_PROVIDER = "terraform.io/builtin/terraform"

Address = tuple[str, str, str]
"""Mode (managed, data or ephemeral), type and name of a resource."""


class Provider(NamedTuple):
    """A provider's full address; `certain` is False if it was guessed from a local name."""

    address: str
    certain: bool


@dataclass(slots=True)
class Declarations:
    """Declared names by kind. A resource has a repetition: count, for_each, none or unknown.

    `required_providers` maps local names to source addresses, "" if none is given; `chosen_providers` maps resources
    that name their provider to its local name.
    """

    variables: set[str] = field(default_factory=set)
    locals: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    resources: dict[Address, str] = field(default_factory=dict)
    required_providers: dict[str, str] = field(default_factory=dict)
    chosen_providers: dict[Unit, str] = field(default_factory=dict)
    _providers: dict[Unit, Provider] = field(default_factory=dict)

    def add(self, kind: str, labels: tuple[str, ...], body: Iterable[str]) -> None:
        """Add one block, given its type, labels and argument names."""
        arguments = frozenset(body)
        if kind == "locals":
            self.locals |= arguments
        elif kind == "variable" and labels:
            self.variables.add(labels[0])
        elif kind == "module" and labels:
            self.modules.add(labels[0])
        elif kind in RESOURCE_KINDS and len(labels) > 1:
            self._add_resource((RESOURCE_KINDS[kind], labels[0], labels[1]), arguments)

    def provider(self, resource: Unit) -> Provider:
        """A resource's provider: from its `provider` argument, else from the first word of its type."""
        known = self._providers.get(resource)
        if known is None:
            known = self._providers[resource] = self._find_provider(resource)
        return known

    def _find_provider(self, resource: Unit) -> Provider:
        local = self.chosen_providers.get(resource) or resource[1].partition("_")[0]
        address = self.required_providers.get(local)
        if not address:
            usual = BUILTIN_PROVIDER if local == "terraform" else f"registry.terraform.io/hashicorp/{local}"
            return Provider(usual, local == "terraform")
        parts = address.lower().split("/")
        return Provider("/".join(["registry.terraform.io", "hashicorp"][: max(0, 3 - len(parts))] + parts), True)

    def _add_resource(self, address: Address, arguments: frozenset[str]) -> None:
        repetition = next((name for name in ("count", "for_each") if name in arguments), "none")
        if address in self.resources and self.resources[address] != repetition:
            repetition = "unknown"
        self.resources[address] = repetition


def declare(declared: Declarations, block: Block) -> None:
    """Add the declarations of one root block."""
    declared.add(block.kind, block.labels, block.body.arguments)
    chosen = block.body.arguments.get("provider")
    if chosen is not None and block.kind in RESOURCE_KINDS:
        unit = (RESOURCE_KINDS[block.kind], *block.labels)
        declared.chosen_providers[unit] = source(chosen.expression).strip('"').partition(".")[0]
    if block.kind == "check":
        for nested in block.body.of_kind("data"):
            declared.add(nested.kind, nested.labels, nested.body.arguments)
    elif block.kind == "terraform":
        for requirements in block.body.of_kind("required_providers"):
            for argument in requirements.body.arguments.values():
                declared.required_providers[argument.name] = _provider_source(source(argument.expression))


def declare_plain(declared: Declarations, content: Mapping[str, object]) -> None:
    """Add the declarations of a file given as plain data, as from JSON. Best effort; reports no errors."""
    for kind, value in content.items():
        if kind == "locals":
            for entry in _mappings(value):
                declared.add(kind, (), entry)
        elif kind in ("variable", "module"):
            for entry in _mappings(value):
                for name in entry:
                    declared.add(kind, (name,), ())
        elif kind in RESOURCE_KINDS:
            for entry in _mappings(value):
                for resource_type, named in entry.items():
                    for names in _mappings(named):
                        for name in names:
                            _declare_unknown_repetition(declared, (RESOURCE_KINDS[kind], resource_type, name))
        elif kind == "check":
            _declare_check(declared, value)


def _declare_unknown_repetition(declared: Declarations, address: Address) -> None:
    declared.resources[address] = "unknown"


def _declare_check(declared: Declarations, value: object) -> None:
    for entry in _mappings(value):
        for named in entry.values():
            for body in _mappings(named):
                declare_plain(declared, {"data": body.get("data", {})})


def _mappings(value: object) -> Iterable[Mapping[str, object]]:
    """The objects of a block in JSON syntax, which is one object or a list of them."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, dict)]


def _provider_source(requirement: str) -> str:
    """The address in `{ source = "hashicorp/aws" }`, without fully parsing it."""
    _, found, rest = requirement.partition("source")
    parts = rest.split('"', 2)
    return parts[1] if found and len(parts) > 2 and parts[0].strip() in ("=", ":") else ""
