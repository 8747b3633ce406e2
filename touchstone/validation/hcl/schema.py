"""Schemas of blocks, and the errors of bodies that do not conform to them.

Terraform's own blocks are built by `own`; schemas of resources come from `terraform providers schema -json`, complete
or in part. Whether values have the right types belongs in `evaluation`.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from touchstone.validation.hcl.expressions import ESCAPE, META_ARGUMENTS, META_BLOCKS, RESOURCE_KINDS, Unit
from touchstone.validation.hcl.parsing import Argument, Block, Body, did_you_mean, source
from touchstone.validation.hcl.values import COLLECTIONS, DYNAMIC, Type, outer, type_of_schema
from touchstone.validation.protocol import Diagnostic

BUILTIN_PROVIDER = "terraform.io/builtin/terraform"
_SECTIONS = {"managed": "resource_schemas", "data": "data_source_schemas", "ephemeral": "ephemeral_resource_schemas"}
_TYPE_WORDS = {"managed": "resource type", "data": "data source", "ephemeral": "ephemeral resource type"}
_OTHER_MODES = {
    "managed": ("data", 'data source "{0}"? If so, declare this using a "data" block instead of a "resource" block.'),
    "data": (
        "managed",
        'managed resource type "{0}"? If so, declare this using a "resource" block instead of a "data" block.',
    ),
}
_UNNAMED = ""
_NONE: frozenset[str] = frozenset()


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
    """One type of nested block, with the names of its labels if they are known, and its minimum and maximum count.

    A maximum of 0 means unlimited. The `mode` is the provider's: list, set, map, single or group.
    """

    block: "BlockSchema"
    labels: tuple[str, ...] | None = ()
    mode: str = ""
    least: int = 0
    most: int = 0

    @property
    def single(self) -> bool:
        """Whether it represents one object rather than a collection."""
        return self.mode in ("single", "group")


@dataclass(frozen=True, slots=True)
class BlockSchema:
    """The attributes and nested blocks that a block may contain.

    `newer` lists what later versions of Terraform accept: neither suggested nor reported. An `open` schema accepts
    unknown arguments and blocks. Where a provider defines the block, nested ones may be dynamic.
    """

    attributes: Mapping[str, AttributeSchema]
    blocks: Mapping[str, NestedSchema]
    newer: frozenset[str] = _NONE
    open: bool = False
    of_provider: bool = True

    @property
    def names(self) -> list[str]:
        """The names of all attributes and nested blocks, sorted."""
        return sorted([*self.attributes, *self.blocks])

    def nested(self, kind: str) -> "BlockSchema":
        """The schema of a nested block; open if it is unknown."""
        return self.blocks[kind].block if kind in self.blocks else OPEN

    def may_be_block(self, name: str) -> bool:
        """Whether an attribute of this name may also be written as blocks."""
        return name in self.attributes and self.attributes[name].block_like


def _own(words: str) -> dict[str, Any]:
    """Attributes of Terraform's own, each `name:type`, with `!` if it is required and `=` if it is computed."""
    types = {"": "string", "any": DYNAMIC, "list": ["list", "string"], "map": ["map", "string"]}
    attributes = {}
    for name, _, kind in (word.partition(":") for word in words.split()):
        flag = {"!": "required", "=": "computed"}.get(name[-1], "optional")
        attributes[name.rstrip("!=")] = {"type": types.get(kind, kind), flag: True}
    return {"attributes": attributes}


def own(
    words: str = "", blocks: Mapping[str, NestedSchema] | None = None, newer: str = "", open: bool = False
) -> BlockSchema:
    """A block that Terraform itself defines."""
    attributes = {name: _attribute(entry) for name, entry in _own(words)["attributes"].items()}
    return BlockSchema(attributes, blocks or {}, frozenset(newer.split()), open, of_provider=False)


OPEN = own(open=True)


class Provider(NamedTuple):
    """A provider's full address; `certain` is False if it was guessed from a local name."""

    address: str
    certain: bool


_BUILTIN_SECTIONS: dict[str, Any] = {
    "resource_schemas": {"terraform_data": {"block": _own("id= output=:any input:any triggers_replace:any")}},
    "data_source_schemas": {
        "terraform_remote_state": {"block": _own("backend! workspace outputs=:any config:any defaults:any")}
    },
}


@dataclass(slots=True)
class Schemas:
    """Schema sections by provider. `complete` lists the providers whose types are all known."""

    providers: dict[str, dict[str, Any]]
    complete: frozenset[str]
    _blocks: dict[tuple[str, str, Provider], BlockSchema] = field(default_factory=dict)

    def of(self, resource: Unit, provider: Provider) -> BlockSchema:
        """The schema of a resource; open if it is unknown, or the provider is ambiguous."""
        key = (resource[0], resource[1], provider)
        if key not in self._blocks:
            self._blocks[key] = self._find(*key)
        return self._blocks[key]

    def _find(self, mode: str, resource_type: str, provider: Provider) -> BlockSchema:
        if provider.address in self.providers:
            names = [provider.address]
        else:  # a guessed address may mean any provider
            names = [name for name in self.providers if name == _UNNAMED or not provider.certain]
        found = [self.types(mode, name)[resource_type] for name in names if resource_type in self.types(mode, name)]
        return _block(found[0]["block"]) if len(found) == 1 and _has_block(found[0]) else OPEN

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


def _block(raw: Mapping[str, Any]) -> BlockSchema:
    return BlockSchema(
        {name: _attribute(_mapping(entry)) for name, entry in sorted(_mapping(raw.get("attributes")).items())},
        {name: _nested(_mapping(entry)) for name, entry in sorted(_mapping(raw.get("block_types")).items())},
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
    labels = () if mode in ("single", "group", "list", "set") else None
    return NestedSchema(_block(_mapping(raw.get("block"))), labels, str(mode), least, most)


# Terraform's own provisioners.
PROVISIONERS = {
    "local-exec": _block(_own("command! working_dir interpreter:list environment:map quiet:bool")),
    "remote-exec": _block(_own("script inline:list scripts:list")),
    "file": _block(_own("destination! source content")),
}
# The arguments of all types of connections.
_OF_CONNECTION = """
host! type user password timeout script_path target_platform private_key certificate host_key agent_identity
proxy_scheme proxy_host proxy_user_name proxy_user_password proxy_command bastion_host bastion_host_key
bastion_user bastion_password bastion_private_key bastion_certificate cacert
port:number proxy_port:number bastion_port:number agent:bool https:bool insecure:bool use_ntlm:bool
"""
CONNECTION = _block(_own(_OF_CONNECTION))
# Of these arguments, exactly one must be given.
_ONE_OF = {"remote-exec": ("inline", "script", "scripts"), "file": ("source", "content")}


def resource_errors(block: Block, schema: BlockSchema, merged: bool) -> Iterator[Diagnostic]:
    """The schema errors of a resource. With `merged` overrides, nothing counts as missing."""
    whole, escaped = _with_escaped(block)
    wrong = list(body_errors(whole, schema, merged, META_ARGUMENTS - escaped, META_BLOCKS - escaped))
    yield from wrong or _read_only_errors(whole, schema)


def provisioner_errors(block: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    """The errors of a provisioner or a connection, apart from the types of its values."""
    yield from body_errors(block, schema, False, frozenset({"when", "on_failure"}), frozenset({"connection"}))
    choice = _ONE_OF.get(block.labels[0], ()) if block.labels else ()
    if choice and sum(name in block.body.arguments for name in choice) != 1:
        yield block.text.error(block.missing, "one of", block.labels[0], ", ".join(choice))


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


def type_error(block: Block, provider: str, schemas: Schemas) -> Diagnostic | None:
    """The error for a type that its provider lacks, if all of that provider's types are known."""
    mode, given = RESOURCE_KINDS[block.kind], block.labels[0]
    if provider not in schemas.complete or given in schemas.types(mode, provider):
        return None
    hint = did_you_mean(given, sorted(schemas.types(mode, provider)))
    other, intended = _OTHER_MODES.get(mode, ("", ""))
    if given in schemas.types(other, provider):
        hint = f"\n\nDid you intend to use the {intended.format(given)}"
    summary = "Invalid data source" if mode == "data" else "Invalid resource type"
    shown = provider.removeprefix("registry.terraform.io/")
    return block.text.error(block.label_nodes[0], "unknown type", summary, shown, _TYPE_WORDS[mode], given, hint)


def body_errors(
    block: Block,
    schema: BlockSchema,
    merged: bool = False,
    free_arguments: frozenset[str] = _NONE,
    free_blocks: frozenset[str] = _NONE,
) -> Iterator[Diagnostic]:
    """Unexpected arguments and nested blocks, wrong labels and numbers of blocks, and whatever is missing.

    An override block need not be complete, nor any block if overrides are `merged`.
    """
    for name, argument in () if schema.open else block.body.arguments.items():
        if name not in schema.attributes and name not in schema.newer and name not in free_arguments:
            yield _unsupported_argument(block, argument, schema)
    same: dict[str, list[Block]] = defaultdict(list)
    generated: set[str] = set()
    for nested in block.body.blocks:
        if nested.kind in free_blocks:
            continue
        if nested.kind == "dynamic" and schema.of_provider and "dynamic" not in schema.blocks:
            generated.update(nested.labels[:1])
            yield from _dynamic_errors(nested, schema, merged)
        else:
            same[nested.kind].append(nested)
            yield from _nested_errors(nested, schema, same[nested.kind], merged)
    if merged or block.override:
        return
    given = {*block.body.arguments, *generated, *(same if schema.of_provider else ())}
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in given:
            yield block.text.error(block.missing, "Missing required argument", name)
    for kind, inner in schema.blocks.items():
        if kind not in generated and len(same[kind]) < inner.least:
            message = "missing block" if inner.single else "too few blocks"
            yield block.text.error(block.missing, message, kind, inner.least)


def _unsupported_argument(block: Block, argument: Argument, schema: BlockSchema) -> Diagnostic:
    if block.text.is_json:
        return block.text.error(None, "Extraneous JSON object property", argument.name)
    hint = did_you_mean(argument.name, (name for name in schema.attributes if name not in block.body.arguments))
    if not hint and argument.name in schema.blocks:
        hint = f' Did you mean to define a block of type "{argument.name}"?'
    return block.text.error(argument.name_node, "Unsupported argument", argument.name, hint)


def _nested_errors(block: Block, schema: BlockSchema, same: list[Block], merged: bool) -> Iterator[Diagnostic]:
    """The errors of one nested block; `same` lists the blocks of its type so far, including this one."""
    text, kind, nested = block.text, block.kind, schema.blocks.get(block.kind)
    if nested is None:
        if not (schema.open or kind in schema.newer or schema.may_be_block(kind)):
            hint = did_you_mean(kind, schema.blocks)
            if not hint and kind in schema.attributes:
                hint = f' Did you mean to define argument "{kind}"? If so, use the equals sign to assign it a value.'
            message = "Extraneous JSON object property" if text.is_json else "Unsupported block type"
            yield text.error(block.kind_node, message, kind, hint)
        return
    if nested.labels is not None:
        yield from _label_errors(block, nested.labels)
    yield from body_errors(block, nested.block, merged)
    if nested.single and len(same) == 2:
        yield text.error(block.header, "second block", kind, text.reference(same[0].header))
    elif not nested.single and nested.most and len(same) == nested.most + 1:
        yield text.error(block.missing, "too many blocks", kind, nested.most)


def _label_errors(block: Block, names: tuple[str, ...]) -> Iterator[Diagnostic]:
    """The error for too few or too many labels."""
    given, listed = len(block.labels), ", ".join(names)
    if given < len(names):
        yield block.text.error(block.brace, "missing label", names[given], block.kind, len(names), listed)
    elif given > len(names):
        expected = f"Only {len(names)} labels ({listed}) are" if names else "No labels are"
        yield block.text.error(block.label_nodes[len(names)], "extraneous label", block.kind, expected)


def _dynamic_errors(dynamic: Block, schema: BlockSchema, merged: bool) -> Iterator[Diagnostic]:
    kind = dynamic.labels[0] if dynamic.labels else ""
    yield from _label_errors(dynamic, ("type",))
    if kind in schema.blocks:
        for content in dynamic.body.of_kind("content"):
            yield from body_errors(content, schema.blocks[kind].block, merged)
    elif dynamic.labels and not schema.may_be_block(kind):
        yield dynamic.text.error(dynamic.label_nodes[0], "Unsupported block type", kind, "")


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
            yield block.text.error(argument.expression, "Value for unconfigurable attribute", name)
