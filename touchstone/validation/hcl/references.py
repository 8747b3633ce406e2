"""Whether references resolve, and are used in the way that their kind allows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import RESOURCE_KINDS, Scope, Step, Traversal, Unit
from touchstone.validation.hcl.parsing import Span, did_you_mean
from touchstone.validation.hcl.schema import BlockSchema, Schemas, unsupported_attribute
from touchstone.validation.hcl.values import PRIMITIVE
from touchstone.validation.protocol import Diagnostic

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
    root, steps = traversal.root, traversal.steps
    if root in _RESERVED:
        detail = (
            f'The symbol name "{root}" is reserved for use in a future Terraform version. If you are using a provider '
            'that already uses this as a resource type name, add the prefix "resource." to force interpretation as a '
            "resource type name."
        )
        return ReferenceCheck(early=[scope.text.error(traversal.root_node, "Reserved symbol name", detail)])
    if root == "self":
        return _check_self(traversal, scope, declared, schemas)
    if root in _WITH_NAME:
        if not steps:
            detail = f'The "{root}" object cannot be accessed directly. Instead, access one of its attributes.'
            return ReferenceCheck(early=[scope.text.error(traversal.root_node, "Invalid reference", detail)])
        if steps[0].is_index:
            detail = f'The "{root}" object does not support this operation.'
            return ReferenceCheck(early=[scope.text.error(steps[0].node, "Invalid reference", detail)])
        if root == "module":
            return _check_module(traversal, scope, declared)
        if root in ("var", "local"):
            return _check_value(traversal, scope, declared)
        return ReferenceCheck(late=list(_check_builtin(traversal, scope)))
    return _check_resource(traversal, scope, declared, schemas)


def _span(traversal: Traversal, scope: Scope, steps: int) -> Span:
    """The span of a traversal up to the given number of steps."""
    return scope.text.span(traversal.root_node, traversal.steps[steps - 1].node if steps and traversal.steps else None)


def _check_value(traversal: Traversal, scope: Scope, declared: Declarations) -> ReferenceCheck:
    """A reference to a variable or a local value."""
    root, name = traversal.root, traversal.steps[0].name
    known = declared.names[root]
    if name in known and (root == "var" or scope.unit != ("local", name)):
        return ReferenceCheck(needs=(root, name))
    span = _span(traversal, scope, 1)
    if name in known:
        detail = f"Local value local.{name} cannot use its own result as part of its expression."
        return ReferenceCheck([scope.text.error(span, "Self-referencing local value", detail)], needs=scope.unit)
    hint = did_you_mean(name, sorted(known))
    if root == "var":
        hint = hint or f' This variable can be declared with a variable "{name}" {{}} block.'
        summary, what = "Reference to undeclared input variable", "An input variable"
    else:
        summary, what = "Reference to undeclared local value", "A local value"
    detail = f'{what} with the name "{name}" has not been declared.{hint}'
    return ReferenceCheck(late=[scope.text.error(span, summary, detail)])


def _check_module(traversal: Traversal, scope: Scope, declared: Declarations) -> ReferenceCheck:
    name = traversal.steps[0].name
    if name in declared.names["module"]:
        return ReferenceCheck(needs=("module", name))
    indexed = len(traversal.steps) > 1 and traversal.steps[1].is_index
    reach = min(len(traversal.steps), 3 if indexed else 2)
    if reach == 3 and traversal.steps[2].is_index:
        reach = 2
    hint = did_you_mean(name, sorted(declared.names["module"]))
    detail = f'No module call named "{name}" is declared in the root module.{hint}'
    undeclared = scope.text.error(_span(traversal, scope, reach), "Reference to undeclared module", detail)
    return ReferenceCheck(late=[undeclared]) if scope.whole else ReferenceCheck(early=[undeclared])


def _check_builtin(traversal: Traversal, scope: Scope) -> Iterator[Diagnostic]:
    root, name = traversal.root, traversal.steps[0].name
    span = _span(traversal, scope, 1)
    if name not in _ATTRIBUTES[root]:
        hint = did_you_mean(name, _ATTRIBUTES[root]) if root == "path" else _SUPPORTED[root]
        detail = f'The "{root}" object does not have an attribute named "{name}".{hint}'
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


_SUPPORTED = {
    "count": " The only supported attribute is count.index, which is the index of each instance of a resource block "
    'that has the "count" argument set.',
    "each": " The supported attributes are each.key and each.value, the current key and value pair of the "
    '"for_each" attribute set.',
    "terraform": " The only supported attributes are terraform.workspace, the name of the currently-selected "
    "workspace, and terraform.applying, a boolean which is true only during apply.",
}
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
        return ReferenceCheck(_attribute_errors(traversal.steps, schemas.of(declared, scope.unit), scope))
    if "self" in scope.unsure:
        return ReferenceCheck()
    detail = (
        'The "self" object is not available in this context. This object can be used only in resource provisioner, '
        "connection, and postcondition blocks."
    )
    return ReferenceCheck(early=[scope.text.error(traversal.root_node, 'Invalid "self" reference', detail)])


def _check_resource(traversal: Traversal, scope: Scope, declared: Declarations, schemas: Schemas) -> ReferenceCheck:
    prefixed = traversal.root in RESOURCE_KINDS
    names = 2 if prefixed else 1
    named = [step.name for step in traversal.steps[:names] if not step.is_index]
    if len(named) < names:
        return ReferenceCheck(early=[_incomplete(traversal, scope, prefixed)])
    address = (RESOURCE_KINDS.get(traversal.root, "managed"), *(named if prefixed else [traversal.root, *named]))
    rest = traversal.steps[names:]
    indexed = bool(rest) and rest[0].is_index
    after = rest[indexed:]
    if scope.whole and after:
        detail = "References in depends_on must be to a whole object (resource, etc), not to an attribute of an object."
        inside = scope.text.span(after[0].node, after[-1].node)
        return ReferenceCheck([scope.text.error(inside, "Invalid depends_on reference", detail)], needs=address)
    if address not in declared.resources:
        span, detail = _span(traversal, scope, names + indexed), _undeclared(address, declared)
        undeclared = scope.text.error(span, "Reference to undeclared resource", detail)
        return ReferenceCheck(late=[undeclared]) if scope.whole else ReferenceCheck(early=[undeclared])
    if scope.whole:
        return ReferenceCheck(needs=address)
    schema = schemas.of(declared, address)
    messages = (_wrong_key(address, declared, indexed, after), _legacy_count(address, after, schema))
    early = [scope.text.error(_span(traversal, scope, names + indexed), *found) for found in messages if found]
    return ReferenceCheck([*early, *_attribute_errors(after, schema, scope)], needs=address)


def _incomplete(traversal: Traversal, scope: Scope, prefixed: bool) -> Diagnostic:
    """A resource type without a name. Terraform points at the step that should have been the name."""
    if prefixed:
        what = _TYPE_WORDS[traversal.root]
        detail = (
            f'The "{traversal.root}" object must be followed by two attribute names: the {what} and the resource name.'
        )
        return scope.text.error(_span(traversal, scope, min(len(traversal.steps), 2)), "Invalid reference", detail)
    detail = (
        "A reference to a resource type must be followed by at least one attribute access, specifying the resource "
        "name."
    )
    where = traversal.steps[0].node if traversal.steps else traversal.root_node
    return scope.text.error(where, "Invalid reference", detail)


def _undeclared(address: Unit, declared: Declarations) -> str:
    mode, resource_type, name = address
    what = {"managed": "A managed", "data": "A data", "ephemeral": "An ephemeral"}[mode]
    detail = f'{what} resource "{resource_type}" "{name}" has not been declared in the root module.'
    if mode == "managed" and ("data", resource_type, name) in declared.resources:
        detail += f"\n\nDid you mean the data resource data.{resource_type}.{name}?"
    return detail


def _wrong_key(address: Unit, declared: Declarations, indexed: bool, after: list[Step]) -> tuple[str, str] | None:
    """An instance key that is missing, or given although there is only one instance."""
    name, repetition = resource_name(address), declared.resources[address]
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


def _legacy_count(address: Unit, after: list[Step], schema: BlockSchema | None) -> tuple[str, str] | None:
    if schema is None or not after or after[0].is_index or after[0].name != "count":
        return None
    return (
        "Invalid resource count attribute",
        'The special "count" attribute is no longer supported after Terraform v0.12. Instead, use '
        f"length({resource_name(address)}) to count resource instances.",
    )


def _attribute_errors(after: list[Step], schema: BlockSchema | None, scope: Scope) -> list[Diagnostic]:
    """The error for an unknown first attribute of a resource, or for a part of one that has none."""
    if schema is None or not after or after[0].is_index or after[0].name == "count":
        return []
    if after[0].name not in schema.names:
        return [unsupported_attribute(scope.text, after[0].node, after[0].name, schema)]
    attribute = schema.attributes.get(after[0].name)
    if attribute is None or attribute.type not in PRIMITIVE or len(after) == 1:
        return []
    if after[1].is_index:
        return [scope.text.error(after[1].node, "Invalid index", "This value does not have any indices.")]
    detail = f"Can't access attributes on a primitive-typed value ({attribute.type})."
    return [scope.text.error(after[1].node, "Unsupported attribute", detail)]


def resource_name(address: Unit) -> str:
    """A resource as references name it.

    >>> resource_name(("managed", "aws_vpc", "main")), resource_name(("data", "aws_ami", "linux"))
    ('aws_vpc.main', 'data.aws_ami.linux')
    """
    return ".".join(address[1:] if address[0] == "managed" else address)
