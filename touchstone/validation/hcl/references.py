"""Whether references resolve, and are used in the way that their kind allows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from touchstone.validation.hcl.declarations import Address, Declarations
from touchstone.validation.hcl.expressions import Step, Traversal
from touchstone.validation.hcl.positions import Span
from touchstone.validation.hcl.schema import BlockSchema, Schemas
from touchstone.validation.hcl.scopes import Scope, Unit
from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.protocol import Diagnostic

_MODES = {"data": "data", "ephemeral": "ephemeral", "resource": "managed"}
_TYPE_WORDS = {"data": "data source type", "ephemeral": "ephemeral resource type", "resource": "resource type"}
_RESERVED = frozenset({"template", "lazy", "arg"})
_ATTRIBUTES = {
    "count": ("index",),
    "each": ("key", "value"),
    "path": ("cwd", "module", "root"),
    "terraform": ("workspace", "applying", "env"),
}
_WITH_NAME = ("var", "local", "module", *_ATTRIBUTES)


class ReferenceCheck(NamedTuple):
    """The result of checking one traversal: errors in two stages, and the unit that it depends on.

    If there are `early` errors (resources and modules, without values), Terraform reports only those. In `depends_on`,
    early errors are references that do not name a whole object.
    """

    early: Sequence[Diagnostic] = ()
    late: Sequence[Diagnostic] = ()
    needs: Unit | None = None


def check_reference(traversal: Traversal, scope: Scope, declared: Declarations, schemas: Schemas) -> ReferenceCheck:
    """Check one traversal in its scope."""
    root = traversal.root
    if root in _RESERVED:
        return ReferenceCheck(early=[_reserved(traversal, scope)])
    if root == "self":
        return _check_self(traversal, scope, declared, schemas)
    if root in _WITH_NAME:
        if not traversal.steps or traversal.steps[0].is_index:
            return ReferenceCheck(early=[_nameless(traversal, scope)])
        if root == "module":
            return _check_module(traversal, scope, declared)
        if root in ("var", "local"):
            return _check_value(traversal, scope, declared)
        return ReferenceCheck(late=list(_check_builtin(traversal, scope)))
    return _check_resource(traversal, scope, declared, schemas)


def _span(traversal: Traversal, scope: Scope, steps: int) -> Span:
    """The span of a traversal up to the given number of steps."""
    return scope.text.span(traversal.root_node, traversal.steps[steps - 1].node if steps and traversal.steps else None)


def _reserved(traversal: Traversal, scope: Scope) -> Diagnostic:
    detail = (
        f'The symbol name "{traversal.root}" is reserved for use in a future Terraform version. If you are using a '
        'provider that already uses this as a resource type name, add the prefix "resource." to force '
        "interpretation as a resource type name."
    )
    return scope.text.error(_span(traversal, scope, 0), "Reserved symbol name", detail)


def _nameless(traversal: Traversal, scope: Scope) -> Diagnostic:
    if traversal.steps:
        detail = f'The "{traversal.root}" object does not support this operation.'
        return scope.text.error(scope.text.span(traversal.steps[0].node), "Invalid reference", detail)
    detail = f'The "{traversal.root}" object cannot be accessed directly. Instead, access one of its attributes.'
    return scope.text.error(_span(traversal, scope, 0), "Invalid reference", detail)


def _check_value(traversal: Traversal, scope: Scope, declared: Declarations) -> ReferenceCheck:
    name = traversal.steps[0].name
    known = declared.variables if traversal.root == "var" else declared.locals
    if name in known:
        unit = (traversal.root, name)
        own = traversal.root == "local" and unit == scope.unit
        return ReferenceCheck(early=[_own_result(traversal, scope)] if own else (), needs=unit)
    hint = did_you_mean(name, sorted(known))
    if traversal.root == "var":
        hint = hint or f' This variable can be declared with a variable "{name}" {{}} block.'
        summary, what = "Reference to undeclared input variable", "An input variable"
    else:
        summary, what = "Reference to undeclared local value", "A local value"
    detail = f'{what} with the name "{name}" has not been declared.{hint}'
    return ReferenceCheck(late=[scope.text.error(_span(traversal, scope, 1), summary, detail)])


def _own_result(traversal: Traversal, scope: Scope) -> Diagnostic:
    name = traversal.steps[0].name
    detail = f"Local value local.{name} cannot use its own result as part of its expression."
    return scope.text.error(_span(traversal, scope, 1), "Self-referencing local value", detail)


def _check_module(traversal: Traversal, scope: Scope, declared: Declarations) -> ReferenceCheck:
    name = traversal.steps[0].name
    if name in declared.modules:
        return ReferenceCheck(needs=("module", name))
    indexed = len(traversal.steps) > 1 and traversal.steps[1].is_index
    reach = min(len(traversal.steps), 3 if indexed else 2)
    if reach == 3 and traversal.steps[2].is_index:
        reach = 2
    detail = (
        f'No module call named "{name}" is declared in the root module.{did_you_mean(name, sorted(declared.modules))}'
    )
    undeclared = scope.text.error(_span(traversal, scope, reach), "Reference to undeclared module", detail)
    return ReferenceCheck(late=[undeclared]) if scope.whole else ReferenceCheck(early=[undeclared])


def _check_builtin(traversal: Traversal, scope: Scope) -> Iterator[Diagnostic]:
    root, name = traversal.root, traversal.steps[0].name
    span = _span(traversal, scope, 1)
    if name not in _ATTRIBUTES[root]:
        detail = f'The "{root}" object does not have an attribute named "{name}".{_builtin_hint(root, name)}'
        yield scope.text.error(span, f'Invalid "{root}" attribute', detail)
    elif root == "terraform" and name == "env":
        detail = (
            'The terraform.env attribute was deprecated in v0.10 and removed in v0.12. The "state environment" concept '
            'was renamed to "workspace" in v0.12, and so the workspace name can now be accessed using the '
            "terraform.workspace attribute."
        )
        yield scope.text.error(span, 'Invalid "terraform" attribute', detail)
    elif root in ("each", "count") and root not in scope.available and root not in scope.unsure:
        yield scope.text.error(span, *_UNREPEATED[root, name])


def _builtin_hint(root: str, name: str) -> str:
    if root == "path":
        return did_you_mean(name, _ATTRIBUTES[root])
    return {
        "count": " The only supported attribute is count.index, which is the index of each instance of a resource "
        'block that has the "count" argument set.',
        "each": " The supported attributes are each.key and each.value, the current key and value pair of the "
        '"for_each" attribute set.',
        "terraform": " The only supported attributes are terraform.workspace, the name of the currently-selected "
        "workspace, and terraform.applying, a boolean which is true only during apply.",
    }[root]


_UNREPEATED = {
    ("each", "key"): (
        'Reference to "each" in context without for_each',
        'The "each" object can be used only in "module" or "resource" blocks, and only when the "for_each" argument '
        "is set.",
    ),
    ("each", "value"): (
        "each.value cannot be used in this context",
        'A reference to "each.value" has been used in a context in which it is unavailable, such as when the '
        'configuration no longer contains the value in its "for_each" expression. Remove this reference to each.value '
        "in your configuration to work around this error.",
    ),
    ("count", "index"): (
        'Reference to "count" in non-counted context',
        'The "count" object can only be used in "module", "resource", and "data" blocks, and only when the "count" '
        "argument is set.",
    ),
}


def _check_self(traversal: Traversal, scope: Scope, declared: Declarations, schemas: Schemas) -> ReferenceCheck:
    if "self" in scope.available:
        schema = schemas.of(declared, scope.unit)
        return ReferenceCheck(early=list(_attribute_errors(traversal.steps, schema, scope)))
    if "self" in scope.unsure:
        return ReferenceCheck()
    detail = (
        'The "self" object is not available in this context. This object can be used only in resource provisioner, '
        "connection, and postcondition blocks."
    )
    return ReferenceCheck(early=[scope.text.error(_span(traversal, scope, 0), 'Invalid "self" reference', detail)])


def _check_resource(traversal: Traversal, scope: Scope, declared: Declarations, schemas: Schemas) -> ReferenceCheck:
    prefixed = traversal.root in _MODES
    names = 2 if prefixed else 1
    named = [step for step in traversal.steps[:names] if not step.is_index]
    if len(named) < names:
        return ReferenceCheck(early=[_incomplete(traversal, scope, prefixed)])
    mode = _MODES.get(traversal.root, "managed")
    resource_type = named[0].name if prefixed else traversal.root
    address: Address = (mode, resource_type, named[-1].name)
    rest = traversal.steps[names:]
    indexed = bool(rest) and rest[0].is_index
    after = rest[1:] if indexed else rest
    if scope.whole and after:
        return ReferenceCheck(early=[_not_whole(after, scope)], needs=address)
    reach = names + indexed
    if address not in declared.resources:
        detail = _undeclared(address, declared)
        undeclared = scope.text.error(_span(traversal, scope, reach), "Reference to undeclared resource", detail)
        return ReferenceCheck(late=[undeclared]) if scope.whole else ReferenceCheck(early=[undeclared])
    if scope.whole:
        return ReferenceCheck(needs=address)
    schema = schemas.of(declared, address)
    early = [
        scope.text.error(_span(traversal, scope, reach), *words)
        for words in (_wrong_key(address, declared, indexed, after), _legacy_count(address, after, schema))
        if words
    ]
    return ReferenceCheck(early=[*early, *_attribute_errors(after, schema, scope)], needs=address)


def _incomplete(traversal: Traversal, scope: Scope, prefixed: bool) -> Diagnostic:
    """A resource type without a name. Terraform points at the step that should have been the name."""
    first_index = next((step for step in traversal.steps[: 2 if prefixed else 1] if step.is_index), None)
    if prefixed:
        detail = (
            f'The "{traversal.root}" object must be followed by two attribute names: the {_TYPE_WORDS[traversal.root]} '
            "and the resource name."
        )
        span = _span(traversal, scope, min(len(traversal.steps), 2))
    else:
        detail = (
            "A reference to a resource type must be followed by at least one attribute access, specifying the "
            "resource name."
        )
        span = scope.text.span(first_index.node) if first_index else _span(traversal, scope, 0)
    return scope.text.error(span, "Invalid reference", detail)


def _undeclared(address: Address, declared: Declarations) -> str:
    mode, resource_type, name = address
    what = {"managed": "A managed", "data": "A data", "ephemeral": "An ephemeral"}[mode]
    detail = f'{what} resource "{resource_type}" "{name}" has not been declared in the root module.'
    if mode == "managed" and ("data", resource_type, name) in declared.resources:
        detail += f"\n\nDid you mean the data resource data.{resource_type}.{name}?"
    return detail


def _not_whole(after: list[Step], scope: Scope) -> Diagnostic:
    detail = "References in depends_on must be to a whole object (resource, etc), not to an attribute of an object."
    span = scope.text.span(after[0].node, after[-1].node)
    return scope.text.error(span, "Invalid depends_on reference", detail)


def _wrong_key(address: Address, declared: Declarations, indexed: bool, after: list[Step]) -> tuple[str, str] | None:
    """An instance key that is missing, or given although there is only one instance."""
    name, repetition = _display(address), declared.resources[address]
    if indexed and repetition == "none":
        return (
            "Unexpected resource instance key",
            f'Because {name} does not have "count" or "for_each" set, references to it must not include an index key. '
            "Remove the bracketed index to refer to the single instance of this resource.",
        )
    if not indexed and after and repetition in ("count", "for_each"):
        key = "count.index" if repetition == "count" else "each.key"
        return (
            "Missing resource instance key",
            f'Because {name} has "{repetition}" set, its attributes must be accessed on specific instances.\n\n'
            f"For example, to correlate with indices of a referring resource, use:\n    {name}[{key}]",
        )
    return None


def _display(address: Address) -> str:
    mode, resource_type, name = address
    prefix = "" if mode == "managed" else f"{mode}."
    return f"{prefix}{resource_type}.{name}"


def _legacy_count(address: Address, after: list[Step], schema: BlockSchema | None) -> tuple[str, str] | None:
    if schema is None or not _is_attribute(after) or after[0].name != "count":
        return None
    return (
        "Invalid resource count attribute",
        'The special "count" attribute is no longer supported after Terraform v0.12. Instead, use '
        f"length({_display(address)}) to count resource instances.",
    )


def _attribute_errors(after: list[Step], schema: BlockSchema | None, scope: Scope) -> Iterator[Diagnostic]:
    """The error for an unknown first attribute of a resource, if its schema is known."""
    if schema is None or not _is_attribute(after):
        return
    name = after[0].name
    if name not in schema.attributes and name not in schema.blocks and name != "count":
        hint = did_you_mean(name, sorted([*schema.attributes, *schema.blocks]))
        detail = f'This object has no argument, nested block, or exported attribute named "{name}".{hint}'
        yield scope.text.error(scope.text.span(after[0].node), "Unsupported attribute", detail)


def _is_attribute(after: list[Step]) -> bool:
    return bool(after) and not after[0].is_index
