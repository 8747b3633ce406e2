"""Provider schemas as printed by `terraform providers schema -json`, complete or in part, and whether a resource's
body conforms to one. Whether its values have the right types belongs in `evaluation`."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from tree_sitter import Node

from touchstone.validation.hcl.declarations import BUILTIN_PROVIDER, Declarations, Provider
from touchstone.validation.hcl.expressions import ESCAPE, META_ARGUMENTS, META_BLOCKS, RESOURCE_KINDS, Unit
from touchstone.validation.hcl.loading import label_errors, unsupported_argument, unsupported_block
from touchstone.validation.hcl.parsing import Block, Body, SourceText, did_you_mean, source
from touchstone.validation.hcl.values import COLLECTIONS, DYNAMIC, Type, outer, type_of_schema
from touchstone.validation.protocol import Diagnostic

_SECTIONS = {"managed": "resource_schemas", "data": "data_source_schemas", "ephemeral": "ephemeral_resource_schemas"}
_UNNAMED = ""
_NONE: frozenset[str] = frozenset()


def _own(required: str, optional: str, computed: str = "", **others: object) -> dict[str, Any]:
    """A schema of Terraform's own: required and optional strings, computed attributes, and optional ones by type."""
    flags = (("required", required, "string"), ("optional", optional, "string"), ("computed", computed, DYNAMIC))
    attributes = {name: {"type": kind, flag: True} for flag, names, kind in flags for name in names.split()}
    return {"attributes": attributes | {name: {"type": kind, "optional": True} for name, kind in others.items()}}


_DATA = _own("", "", "output", input=DYNAMIC, triggers_replace=DYNAMIC)
_DATA["attributes"]["id"] = {"type": "string", "computed": True}
_REMOTE_STATE = _own("backend", "workspace", "outputs", config=DYNAMIC, defaults=DYNAMIC)
_BUILTIN_SECTIONS: dict[str, Any] = {
    "resource_schemas": {"terraform_data": {"block": _DATA}},
    "data_source_schemas": {"terraform_remote_state": {"block": _REMOTE_STATE}},
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

    @property
    def names(self) -> list[str]:
        """The names of all attributes and nested blocks, sorted."""
        return sorted([*self.attributes, *self.blocks])

    def may_be_block(self, name: str) -> bool:
        """Whether an attribute of this name may also be written as blocks."""
        return name in self.attributes and self.attributes[name].block_like


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


def _matched_section(content: dict[str, Any]) -> dict[str, Any]:
    """The schema of one block: its kind (`resource`, `data`) and its type are in two further keys, in either order.

    Without a type, or of another kind of block, it says nothing of any resource.
    """
    words = f"{content['matched_block_type']} {content['matched_block_name']}".replace(".", " ").split()
    kinds = [kind for word in words for kind in RESOURCE_KINDS if word == kind or word.startswith(f"{kind}_s")]
    types = [word for word in words if "_" in word and word not in (*_SECTIONS.values(), "data_source")]
    if not types or not (content.get("attributes") or content.get("block_types")):
        return {}
    return {_SECTIONS[RESOURCE_KINDS[kinds[0] if kinds else "resource"]]: {types[0]: {"block": content}}}


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
    required, computed, optional, sensitive = (
        raw.get(flag) is True for flag in ("required", "computed", "optional", "sensitive")
    )
    nested = _mapping(raw.get("nested_type"))
    type_ = _type_of_nested(nested) if nested else type_of_schema(raw.get("type"))
    of_objects = not nested and type_[0] in ("list", "set") and outer(type_[1]) == "object"
    return AttributeSchema(required, computed and not required and not optional, of_objects, type_, sensitive)


def _type_of_nested(raw: dict[str, Any]) -> Type:
    """The type of a nested attribute: its own attributes are optional unless they are required."""
    attributes = {name: _attribute(_mapping(entry)) for name, entry in _mapping(raw.get("attributes")).items()}
    inner = ("object", tuple((name, one.type, one.required) for name, one in attributes.items()))
    mode = raw.get("nesting_mode")
    return inner if mode == "single" else (mode, inner) if mode in COLLECTIONS else DYNAMIC


def _nested(raw: dict[str, Any]) -> NestedSchema:
    mode, *limits = (raw.get(name) for name in ("nesting_mode", "min_items", "max_items"))
    least, most = (limit if isinstance(limit, int) and limit > 0 else 0 for limit in limits)
    return NestedSchema(_block(_mapping(raw.get("block"))), mode if isinstance(mode, str) else "", least, most)


_LINES, _MAP = ["list", "string"], ["map", "string"]
# Terraform's own provisioners.
PROVISIONERS = {
    "local-exec": _block(_own("command", "working_dir", interpreter=_LINES, environment=_MAP, quiet="bool")),
    "remote-exec": _block(_own("", "script", inline=_LINES, scripts=_LINES)),
    "file": _block(_own("destination", "source content")),
}
# The arguments of all types of connections.
_OF_CONNECTION = _own(
    "host",
    "type user password timeout script_path target_platform private_key certificate host_key agent_identity "
    "proxy_scheme proxy_host proxy_user_name proxy_user_password proxy_command bastion_host bastion_host_key "
    "bastion_user bastion_password bastion_private_key bastion_certificate cacert",
    **dict.fromkeys(("port", "proxy_port", "bastion_port"), "number"),
    **dict.fromkeys(("agent", "https", "insecure", "use_ntlm"), "bool"),
)
CONNECTION = _block(_OF_CONNECTION)
# Of these arguments, exactly one must be given.
_ONE_OF = {"remote-exec": ("inline", "script", "scripts"), "file": ("source", "content")}


def resource_errors(block: Block, declared: Declarations, schemas: Schemas, merged: bool) -> Iterator[Diagnostic]:
    """The schema errors of a resource. With `merged` overrides, nothing counts as missing."""
    schema = schemas.of(declared, (RESOURCE_KINDS[block.kind], *block.labels))
    if schema is not None:
        whole, escaped = _with_escaped(block)
        wrong = list(_body_errors(whole, schema, META_ARGUMENTS - escaped, META_BLOCKS - escaped, merged))
        yield from wrong or _read_only_errors(whole, schema)


def unsupported_attribute(text: SourceText, node: Node, name: str, schema: BlockSchema) -> Diagnostic:
    """The error for a reference to an attribute that a resource does not have."""
    hint = did_you_mean(name, schema.names)
    detail = f'This object has no argument, nested block, or exported attribute named "{name}".{hint}'
    return text.error(node, "Unsupported attribute", detail)


def provisioner_errors(block: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    """The errors of a provisioner or a connection, apart from the types of its values."""
    yield from _body_errors(block, schema, frozenset({"when", "on_failure"}), frozenset({"connection"}), merged=False)
    choice = _ONE_OF.get(block.labels[0], ()) if block.labels else ()
    if choice and sum(name in block.body.arguments for name in choice) != 1:
        detail = f"Exactly one of {', '.join(choice)} must be set."
        yield block.text.error(block.missing, f"Invalid {block.labels[0]} provisioner configuration", detail)


def _with_escaped(block: Block) -> tuple[Block, frozenset[str]]:
    """The resource with the content of its `_` block as part of its own, and the names in that content.

    Within `_`, even names such as `count` and `lifecycle` are the provider's.
    """
    inner = [nested.body for nested in block.body.of_kind(ESCAPE)]
    if not inner:
        return block, _NONE
    arguments = {name: argument for body in (block.body, *inner) for name, argument in body.arguments.items()}
    blocks = [nested for body in (block.body, *inner) for nested in body.blocks if nested.kind != ESCAPE]
    names = frozenset(name for body in inner for name in (*body.arguments, *(nested.kind for nested in body.blocks)))
    return replace(block, body=Body(arguments, blocks)), names


def type_error(block: Block, declared: Declarations, schemas: Schemas) -> Diagnostic | None:
    """The error for a type that its provider lacks, if all of that provider's types are known."""
    mode, given = RESOURCE_KINDS[block.kind], block.labels[0]
    provider = declared.provider((mode, *block.labels)).address
    if provider not in schemas.complete or given in schemas.types(mode, provider):
        return None
    summary, what = {
        "managed": ("Invalid resource type", "resource type"),
        "data": ("Invalid data source", "data source"),
        "ephemeral": ("Invalid resource type", "ephemeral resource type"),
    }[mode]
    hint = did_you_mean(given, sorted(schemas.types(mode, provider)))
    if mode == "managed" and given in schemas.types("data", provider):
        hint = (
            f'\n\nDid you intend to use the data source "{given}"? If so, declare this using a "data" block '
            'instead of a "resource" block.'
        )
    elif mode == "data" and given in schemas.types("managed", provider):
        hint = (
            f'\n\nDid you intend to use the managed resource type "{given}"? If so, declare this using a '
            '"resource" block instead of a "data" block.'
        )
    shown = provider.removeprefix("registry.terraform.io/")
    detail = f'The provider {shown} does not support {what} "{given}".{hint}'
    return block.text.error(block.label_nodes[0], summary, detail)


def _body_errors(
    block: Block, schema: BlockSchema, free_arguments: frozenset[str], free_blocks: frozenset[str], merged: bool
) -> Iterator[Diagnostic]:
    for argument in block.body.arguments.values():
        if argument.name not in schema.attributes and argument.name not in free_arguments:
            yield unsupported_argument(block, argument, sorted(schema.attributes), schema.blocks)
    same: dict[str, list[Block]] = defaultdict(list)
    generated: set[str] = set()
    for nested in block.body.blocks:
        if nested.kind in free_blocks:
            continue
        if nested.kind == "dynamic" and "dynamic" not in schema.blocks:
            generated.update(nested.labels[:1])
            yield from _dynamic_errors(nested, schema, merged)
        else:
            same[nested.kind].append(nested)
            yield from _nested_errors(nested, schema, same[nested.kind], merged)
    if not merged:
        yield from _missing_errors(block, schema, same, generated)


def _nested_errors(block: Block, schema: BlockSchema, same: list[Block], merged: bool) -> Iterator[Diagnostic]:
    """The errors of one nested block; `same` lists the blocks of its type so far, including this one."""
    text, kind, nested = block.text, block.kind, schema.blocks.get(block.kind)
    if nested is None:
        if not schema.may_be_block(kind):
            yield unsupported_block(block, sorted(schema.blocks), schema.attributes)
        return
    if nested.mode in ("single", "group", "list", "set"):
        yield from label_errors(block, ())
    yield from _body_errors(block, nested.block, _NONE, _NONE, merged)
    if nested.single and len(same) == 2:
        earlier = text.reference(same[0].header)
        detail = f'Only one block of type "{kind}" is allowed. Previous definition was at {earlier}.'
        yield text.error(block.header, f"Duplicate {kind} block", detail)
    elif not nested.single and nested.most and len(same) == nested.most + 1:
        detail = f'No more than {nested.most} "{kind}" blocks are allowed'
        yield text.error(block.missing, f"Too many {kind} blocks", detail)


def _dynamic_errors(dynamic: Block, schema: BlockSchema, merged: bool) -> Iterator[Diagnostic]:
    if not dynamic.labels:
        return
    kind = dynamic.labels[0]
    if kind in schema.blocks:
        for content in dynamic.body.of_kind("content"):
            yield from _body_errors(content, schema.blocks[kind].block, _NONE, _NONE, merged)
    elif not schema.may_be_block(kind):
        detail = f'Blocks of type "{kind}" are not expected here.'
        yield dynamic.text.error(dynamic.label_nodes[0], "Unsupported block type", detail)


def _missing_errors(
    block: Block, schema: BlockSchema, same: dict[str, list[Block]], generated: set[str]
) -> Iterator[Diagnostic]:
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in block.body.arguments and name not in same and name not in generated:
            yield block.text.missing_argument(block.missing, name)
    for kind, nested in schema.blocks.items():
        if kind in generated or len(same[kind]) >= nested.least:
            continue
        if nested.single:
            summary, detail = f"Missing {kind} block", f'A block of type "{kind}" is required here.'
        else:
            summary = f"Insufficient {kind} blocks"
            detail = f'At least {nested.least} "{kind}" blocks are required.'
        yield block.text.error(block.missing, summary, detail)


def _read_only_errors(block: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    """Errors for attributes that only the provider sets, in its SDK's wording; null leaves them unset."""
    builtin = any(block.labels[0] in section for section in _BUILTIN_SECTIONS.values())
    for name, argument in block.body.arguments.items():
        attribute = schema.attributes.get(name)
        if attribute is None or not attribute.read_only or "null" in source(argument.expression):
            continue
        if builtin:
            yield Diagnostic("error", f'"{name}" attribute is read-only')
        else:
            detail = (
                f'Can\'t configure a value for "{name}": its value will be decided automatically based on the result '
                "of applying this configuration."
            )
            yield block.text.error(argument.expression, "Value for unconfigurable attribute", detail)
