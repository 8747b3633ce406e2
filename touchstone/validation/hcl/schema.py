"""Provider schemas as printed by `terraform providers schema -json`, complete or in part."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from touchstone.validation.hcl.declarations import BUILTIN_PROVIDER, Declarations, Provider
from touchstone.validation.hcl.scopes import Unit
from touchstone.validation.hcl.types import COLLECTIONS, DYNAMIC, Type, type_of_schema

_SECTIONS = {
    "managed": "resource_schemas",
    "data": "data_source_schemas",
    "ephemeral": "ephemeral_resource_schemas",
}
_UNNAMED = ""
_BUILTIN_SECTIONS: dict[str, Any] = {
    "resource_schemas": {
        "terraform_data": {
            "block": {
                "attributes": {
                    "id": {"type": "string", "computed": True},
                    "input": {"type": "dynamic", "optional": True},
                    "output": {"type": "dynamic", "computed": True},
                    "triggers_replace": {"type": "dynamic", "optional": True},
                }
            }
        }
    },
    "data_source_schemas": {
        "terraform_remote_state": {
            "block": {
                "attributes": {
                    "backend": {"type": "string", "required": True},
                    "config": {"type": "dynamic", "optional": True},
                    "defaults": {"type": "dynamic", "optional": True},
                    "outputs": {"type": "dynamic", "computed": True},
                    "workspace": {"type": "string", "optional": True},
                }
            }
        }
    },
}


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """One attribute. `block_like`: it may also be written as blocks, as Terraform allows for lists of objects that are
    no nested attributes."""

    required: bool
    read_only: bool
    block_like: bool
    type: Type = DYNAMIC
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class NestedSchema:
    """One type of nested block, with its minimum and maximum count; 0 means unlimited."""

    block: "BlockSchema"
    mode: str
    least: int
    most: int

    @property
    def single(self) -> bool:
        """Whether the block represents one object rather than a collection."""
        return self.mode in ("single", "group")


@dataclass(frozen=True, slots=True)
class BlockSchema:
    """The attributes and nested blocks that a resource or nested block may contain."""

    attributes: dict[str, AttributeSchema]
    blocks: dict[str, NestedSchema]


@dataclass(slots=True)
class Schemas:
    """Schema sections by provider. `complete` lists the providers whose types are all known."""

    providers: dict[str, dict[str, Any]]
    complete: frozenset[str]
    _blocks: dict[tuple[str, str, Provider], BlockSchema | None] = field(default_factory=dict)

    def of(self, declared: Declarations, resource: Unit) -> BlockSchema | None:
        """A declared resource's schema; None if it is unknown, or the provider is ambiguous."""
        mode, resource_type, *_ = resource
        key = (mode, resource_type, declared.provider(resource))
        if key not in self._blocks:
            self._blocks[key] = self._find(*key)
        return self._blocks[key]

    def _find(self, mode: str, resource_type: str, provider: Provider) -> BlockSchema | None:
        if provider.address in self.providers:
            names = [provider.address]
        else:  # a guessed address may mean any provider
            names = [name for name in self.providers if name == _UNNAMED or not provider.certain]
        found = [self.types(mode, name)[resource_type] for name in names if resource_type in self.types(mode, name)]
        return _block(found[0]["block"]) if len(found) == 1 and _has_block(found[0]) else None

    def types(self, mode: str, provider: str) -> dict[str, Any]:
        """The schemas of one provider's types, by name."""
        return _mapping(self.providers.get(provider, {}).get(_SECTIONS.get(mode, "")))

    def is_builtin(self, resource_type: str) -> bool:
        """Whether a type belongs to Terraform's built-in provider."""
        return any(resource_type in section for section in _BUILTIN_SECTIONS.values())


@lru_cache(maxsize=16)
def read_schemas(text: str | None) -> Schemas:
    """Parse a schema document and add Terraform's built-in provider. Raises ValueError if it is not one."""
    if text is None:
        return Schemas({BUILTIN_PROVIDER: _BUILTIN_SECTIONS}, frozenset({BUILTIN_PROVIDER}))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as broken:
        reason = " ".join(str(broken).split())
        raise ValueError(f"resource schema is not valid JSON: {reason}") from None
    providers, complete = _providers(document)
    return Schemas({**providers, BUILTIN_PROVIDER: _BUILTIN_SECTIONS}, complete | {BUILTIN_PROVIDER})


def _providers(document: object) -> tuple[dict[str, dict[str, Any]], frozenset[str]]:
    content = _mapping(document)
    if isinstance(content.get("provider_schemas"), dict):
        providers = {name: entry for name, entry in content["provider_schemas"].items() if isinstance(entry, dict)}
        return providers, frozenset(providers)
    if any(section in content for section in _SECTIONS.values()):
        return {_UNNAMED: content}, frozenset()
    if "matched_block_name" in content and "matched_block_type" in content:
        return {_UNNAMED: _matched_section(content)}, frozenset()
    types = {name: entry for name, entry in content.items() if _has_block(entry)}
    if not types:
        raise ValueError(
            "resource schema is JSON but no schema: expected the output of `terraform providers schema -json`, "
            'one provider\'s part of it, {"<resource type>": {"version": 0, "block": {...}}}, or one block with its '
            "matched_block_type and matched_block_name"
        )
    data = {name.removeprefix("data."): entry for name, entry in types.items() if name.startswith("data.")}
    return {_UNNAMED: {"resource_schemas": types, "data_source_schemas": data}}, frozenset()


_MATCHED_KINDS = {"resource": "resource_schemas", "data": "data_source_schemas", "ephemeral": _SECTIONS["ephemeral"]}


def _matched_section(content: dict[str, Any]) -> dict[str, Any]:
    """The schema of one block: its kind (`resource`, `data`) and its type are in two further keys, in either order.

    Without a type, or of another kind of block, it says nothing of any resource.
    """
    words = f"{content['matched_block_type']} {content['matched_block_name']}".replace(".", " ").split()
    kinds = [kind for word in words for kind in _MATCHED_KINDS if word == kind or word.startswith(f"{kind}_s")]
    types = [word for word in words if "_" in word and word not in (*_SECTIONS.values(), "data_source")]
    if not types or not (content.get("attributes") or content.get("block_types")):
        return {}
    section = _MATCHED_KINDS[kinds[0]] if kinds else "resource_schemas"
    return {section: {types[0]: {"block": content}}}


def _has_block(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("block"), dict)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _block(raw: dict[str, Any]) -> BlockSchema:
    return BlockSchema(
        {name: _attribute(_mapping(entry)) for name, entry in _mapping(raw.get("attributes")).items()},
        {name: _nested(_mapping(entry)) for name, entry in _mapping(raw.get("block_types")).items()},
    )


def _attribute(raw: dict[str, Any]) -> AttributeSchema:
    required = raw.get("required") is True
    read_only = raw.get("computed") is True and not required and raw.get("optional") is not True
    kind = raw.get("type")
    nested = _mapping(raw.get("nested_type"))
    type_ = _type_of_nested(nested) if nested else type_of_schema(kind)
    return AttributeSchema(required, read_only, _is_list_of_objects(kind), type_, raw.get("sensitive") is True)


def _type_of_nested(raw: dict[str, Any]) -> Type:
    """The type of a nested attribute: its own attributes are optional unless they are required."""
    attributes = {name: _attribute(_mapping(entry)) for name, entry in _mapping(raw.get("attributes")).items()}
    inner = ("object", tuple((name, one.type, one.required) for name, one in attributes.items()))
    mode = raw.get("nesting_mode")
    return inner if mode == "single" else (mode, inner) if mode in COLLECTIONS else DYNAMIC


def _is_list_of_objects(kind: object) -> bool:
    if not (isinstance(kind, list) and len(kind) == 2 and kind[0] in ("list", "set")):
        return False
    element = kind[1]
    return isinstance(element, list) and bool(element) and element[0] == "object"


def _nested(raw: dict[str, Any]) -> NestedSchema:
    mode = raw.get("nesting_mode")
    return NestedSchema(
        _block(_mapping(raw.get("block"))),
        mode if isinstance(mode, str) else "",
        _count(raw, "min_items"),
        _count(raw, "max_items"),
    )


def _count(raw: dict[str, Any], name: str) -> int:
    value = raw.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _built_in(required: str, texts: str, **others: object) -> BlockSchema:
    """A schema of Terraform's own: required and optional strings by name, and attributes of other types."""
    types: dict[str, object] = {**dict.fromkeys((*required.split(), *texts.split()), "string"), **others}
    entries = {name: {"type": kind, "required": name in required.split()} for name, kind in types.items()}
    return _block({"attributes": entries})


_LINES, _MAP = ["list", "string"], ["map", "string"]
_PROVISIONERS = {
    "local-exec": _built_in("command", "working_dir", interpreter=_LINES, environment=_MAP, quiet="bool"),
    "remote-exec": _built_in("", "script", inline=_LINES, scripts=_LINES),
    "file": _built_in("destination", "source content"),
}
_CONNECTION = _built_in(
    "host",
    "type user password timeout script_path target_platform private_key certificate host_key agent_identity "
    "proxy_scheme proxy_host proxy_user_name proxy_user_password proxy_command bastion_host bastion_host_key "
    "bastion_user bastion_password bastion_private_key bastion_certificate cacert",
    **dict.fromkeys(("port", "proxy_port", "bastion_port"), "number"),
    **dict.fromkeys(("agent", "https", "insecure", "use_ntlm"), "bool"),
)


def provisioner_schema(kind: str) -> BlockSchema | None:
    """The schema of one of Terraform's own provisioners; None if it is another."""
    return _PROVISIONERS.get(kind)


def connection_schema() -> BlockSchema:
    """The schema of a `connection` block: what any type of connection takes."""
    return _CONNECTION
