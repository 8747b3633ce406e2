"""Duplicate declarations in a module."""

from collections.abc import Iterable, Iterator

from touchstone.validation.hcl.positions import Span
from touchstone.validation.hcl.tree import Argument, Block
from touchstone.validation.protocol import Diagnostic

_NAMED_ONCE = ("variable", "output", "module", "resource", "data", "ephemeral", "check", "provider")
_NAMED_IN_JSON = (*_NAMED_ONCE[:-1], "local")  # a provider may have an alias


def duplicate_errors(
    blocks: Iterable[Block], in_json: Iterable[tuple[str, tuple[str, ...]]] = ()
) -> Iterator[Diagnostic]:
    """Errors for everything declared more than once; blocks of override files do not count.

    `in_json` are the declarations in JSON syntax, each after its file; of them no place is known.
    """
    first: dict[tuple[str, ...], tuple[Block, Block | Argument]] = {}
    for block in blocks:
        for key, thing in () if block.override else _declared_by(block):
            if key not in first:
                first[key] = (block, thing)
                continue
            earlier, place = first[key]
            summary, detail = _message(key, earlier.text.reference(_place(earlier, place)))
            yield block.text.error(_place(block, thing), summary, detail)
    seen = {key: block.text.name for key, (block, _) in first.items()}
    for path, key in in_json:
        if key[0] in _NAMED_IN_JSON and key in seen:
            yield Diagnostic("error", *_message(key, seen[key]), path)
        elif key[0] in _NAMED_IN_JSON:
            seen[key] = path.rpartition("/")[2]


def _declared_by(block: Block) -> Iterator[tuple[tuple[str, ...], Block | Argument]]:
    if block.kind in _NAMED_ONCE and (block.kind != "provider" or "alias" not in block.body.arguments):
        yield (block.kind, *block.labels), block
    elif block.kind == "locals":
        for argument in block.body.arguments.values():
            yield ("local", argument.name), argument
    elif block.kind == "terraform":
        for nested in block.body.blocks:
            if nested.kind in ("required_providers", "backend", "cloud"):
                yield (nested.kind,), nested


def _place(block: Block, thing: Block | Argument) -> Span:
    if isinstance(thing, Block):
        return thing.header
    return block.text.span(thing.name_node, thing.expression)


def _message(key: tuple[str, ...], earlier: str) -> tuple[str, str]:
    kind, names = key[0], key[1:]
    if kind in ("resource", "data", "ephemeral"):
        what = {"resource": "resource", "data": "data resource", "ephemeral": "ephemeral resource"}[kind]
        return (
            f'Duplicate {kind} "{names[0]}" configuration',
            f'A {names[0]} {what} named "{names[1]}" was already declared at {earlier}. '
            "Resource names must be unique per type in each module.",
        )
    summary, detail = _TEXTS[kind]
    name = names[0] if names else ""
    return summary.replace("NAME", name), detail.replace("NAME", name).replace("PLACE", earlier)


_TEXTS = {
    "variable": (
        "Duplicate variable declaration",
        'A variable named "NAME" was already declared at PLACE. Variable names must be unique within a module.',
    ),
    "local": (
        "Duplicate local value definition",
        'A local value named "NAME" was already defined at PLACE. Local value names must be unique within a module.',
    ),
    "output": (
        "Duplicate output definition",
        'An output named "NAME" was already defined at PLACE. Output names must be unique within a module.',
    ),
    "module": (
        "Duplicate module call",
        'A module call named "NAME" was already defined at PLACE. Module calls must have unique names within a module.',
    ),
    "provider": (
        "Duplicate provider configuration",
        'A default (non-aliased) provider configuration for "NAME" was already given at PLACE. If multiple '
        'configurations are required, set the "alias" argument for alternative configurations.',
    ),
    "required_providers": (
        "Duplicate required providers configuration",
        "A module may have only one required providers configuration. The required providers were previously "
        "configured at PLACE.",
    ),
    "backend": (
        "Duplicate backend configuration",
        "A module may have only one backend configuration. The backend was previously configured at PLACE.",
    ),
    "cloud": (
        "Duplicate HCP Terraform configurations",
        "A module may have only one 'cloud' block configuring HCP Terraform or Terraform Enterprise. The 'cloud' "
        "block was previously configured at PLACE.",
    ),
    "check": (
        'Duplicate check "NAME" configuration',
        'A check block named "NAME" was already declared at PLACE. Check blocks must be unique within each module.',
    ),
}
