"""Whether references resolve, and are used in the way that their kind allows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import RESOURCE_KINDS, Scope, Step, Traversal, Unit
from touchstone.validation.hcl.parsing import did_you_mean
from touchstone.validation.hcl.schema import BlockSchema
from touchstone.validation.hcl.values import PRIMITIVE, Type, attributes_of, outer, type_name
from touchstone.validation.protocol import Diagnostic

# Errors of references to resources and modules, found without values, and all others. Terraform reports the late ones
# only if there are no early ones. In `depends_on`, early errors are references that do not name a whole object.
EARLY, LATE = range(2)
_TYPE_WORDS = {"data": "data source type", "ephemeral": "ephemeral resource type", "resource": "resource type"}
_MODES = {"managed": "A managed", "data": "A data", "ephemeral": "An ephemeral"}
_RESERVED = frozenset({"template", "lazy", "arg"})
_NAMED = ("var", "local", "module")
_ATTRIBUTES = {
    "count": ("index",),
    "each": ("key", "value"),
    "path": ("cwd", "module", "root"),
    "terraform": ("workspace", "applying", "env"),
}
_SUPPORTED = {
    "count": " The only supported attribute is count.index, which is the index of each instance of a resource block "
    'that has the "count" argument set.',
    "each": " The supported attributes are each.key and each.value, the current key and value pair of the "
    '"for_each" attribute set.',
    "terraform": " The only supported attributes are terraform.workspace, the name of the currently-selected "
    "workspace, and terraform.applying, a boolean which is true only during apply.",
}


@dataclass(slots=True)
class Reference:
    """One traversal in its scope, with the declarations and schemas of the module."""

    traversal: Traversal
    scope: Scope
    declared: Declarations
    schema_of: Callable[[Unit], BlockSchema]

    @property
    def names(self) -> int:
        """The number of steps that are names, so that they say which object is meant."""
        return 2 if self.traversal.root in RESOURCE_KINDS else 1

    @property
    def target(self) -> Unit | None:
        """The unit that it depends on, whether or not it is declared; None if it names none."""
        root, steps = self.traversal.root, self.traversal.steps[: self.names]
        if root == "self" or root in _RESERVED or root in _ATTRIBUTES:
            return None
        if len(steps) < self.names or any(step.is_index for step in steps):
            return None
        named = [step.name for step in steps]
        if root in _NAMED:
            return (root, *named)
        return (RESOURCE_KINDS[root], *named) if root in RESOURCE_KINDS else ("managed", root, *named)

    def errors(self) -> Iterator[tuple[int, Diagnostic]]:
        """Its errors, each early or late."""
        root, steps = self.traversal.root, self.traversal.steps
        if root in _RESERVED:
            yield EARLY, self._error(0, "Reserved symbol name", root)
        elif root == "self":
            if "self" in self.scope.available:
                yield from self._attribute_errors(steps, self.schema_of(self.scope.unit))
            elif "self" not in self.scope.unsure:
                yield EARLY, self._error(0, 'Invalid "self" reference')
        elif root not in _NAMED and root not in _ATTRIBUTES:
            yield from self._resource_errors()
        elif not steps:
            yield EARLY, self._error(0, "no attribute", root)
        elif steps[0].is_index:
            yield EARLY, self.scope.text.error(steps[0].node, "no operation", root)
        elif root in _NAMED:
            yield from self._name_errors(root, steps[0].name)
        else:
            yield from self._builtin_errors(root, steps[0].name)

    def _error(self, steps: int, message: str, *words: object) -> Diagnostic:
        """An error at the traversal up to a number of steps."""
        last = self.traversal.steps[steps - 1].node if steps and self.traversal.steps else None
        return self.scope.text.error(self.scope.text.span(self.traversal.root_node, last), message, *words)

    def _name_errors(self, root: str, name: str) -> Iterator[tuple[int, Diagnostic]]:
        """The errors of a reference to a variable, a local value or a module call."""
        known, reach = self.declared.names[root], 1
        if root == "module":  # Terraform points at the output too
            indices = [step.is_index for step in self.traversal.steps[1:3]]
            reach = 3 if indices == [True, False] else min(len(self.traversal.steps), 2)
        if name not in known:
            declare = f' This variable can be declared with a variable "{name}" {{}} block.' if root == "var" else ""
            hint = did_you_mean(name, sorted(known)) or declare
            rank = EARLY if root == "module" and not self.scope.whole else LATE
            yield rank, self._error(reach, f"undeclared {root}", name, hint)
        elif self.scope.unit == ("local", name) == (root, name):
            yield EARLY, self._error(1, "Self-referencing local value", name)

    def _builtin_errors(self, root: str, name: str) -> Iterator[tuple[int, Diagnostic]]:
        if name not in _ATTRIBUTES[root]:
            hint = did_you_mean(name, _ATTRIBUTES[root]) if root == "path" else _SUPPORTED[root]
            yield LATE, self._error(1, "unknown builtin", root, name, hint)
        elif name == "env":
            yield LATE, self._error(1, 'Invalid "terraform" attribute')
        elif root in ("each", "count") and root not in self.scope.available and root not in self.scope.unsure:
            yield LATE, self._error(1, f"{root}.{name}")

    def _resource_errors(self) -> Iterator[tuple[int, Diagnostic]]:
        root, steps, address = self.traversal.root, self.traversal.steps, self.target
        text, rest = self.scope.text, steps[self.names :]
        indexed = bool(rest) and rest[0].is_index
        after, reach = rest[indexed:], self.names + indexed
        if address is None and root in RESOURCE_KINDS:
            yield EARLY, self._error(min(len(steps), 2), "two names", root, _TYPE_WORDS[root])
        elif address is None:  # Terraform points at the step that should have been the name
            yield EARLY, text.error(steps[0].node if steps else self.traversal.root_node, "one name")
        elif self.scope.whole and after:
            inside = text.span(after[0].node, after[-1].node)
            yield EARLY, text.error(inside, "Invalid depends_on reference")
        elif address not in self.declared.resources:
            mode, kind, name = address
            hint = ""
            if mode == "managed" and ("data", kind, name) in self.declared.resources:
                hint = f"\n\nDid you mean the data resource data.{kind}.{name}?"
            undeclared = self._error(reach, "Reference to undeclared resource", _MODES[mode], kind, name, hint)
            yield LATE if self.scope.whole else EARLY, undeclared
        elif not self.scope.whole:
            named, repetition = resource_name(address), self.declared.resources[address]
            if indexed and repetition == "none":
                yield EARLY, self._error(reach, "Unexpected resource instance key", named)
            elif not indexed and after and repetition in ("count", "for_each"):
                key = "count.index" if repetition == "count" else "each.key"
                yield EARLY, self._error(reach, "Missing resource instance key", named, repetition, key)
            schema = self.schema_of(address)
            if not schema.open and after and not after[0].is_index and after[0].name == "count":
                yield EARLY, self._error(reach, "Invalid resource count attribute", named)
            yield from self._attribute_errors(after, schema)

    def _attribute_errors(self, after: list[Step], schema: BlockSchema) -> Iterator[tuple[int, Diagnostic]]:
        """The error for an unknown attribute of a resource or of a nested block, or for a part of one that has none."""
        if schema.open or not after or after[0].is_index or after[0].name == "count":
            return
        (_, name, node), *rest = after
        nested, error = schema.blocks.get(name), self.scope.text.error
        if name in schema.attributes:
            yield from self._type_errors(rest, schema.attributes[name].type)
        elif nested is None:
            yield EARLY, error(node, "of resource", name, did_you_mean(name, schema.names))
        elif nested.single:
            yield from self._attribute_errors(rest, nested.block)
        elif rest and nested.mode == "set":
            yield EARLY, error(rest[0].node, "set of blocks", name)
        elif rest and nested.mode == "list" and not rest[0].is_index:
            yield EARLY, error(rest[0].node, "list of blocks", name)
        elif nested.mode in ("list", "map"):
            yield from self._attribute_errors(rest[1:], nested.block)

    def _type_errors(self, steps: list[Step], kind: Type) -> Iterator[tuple[int, Diagnostic]]:
        """The error for a step into an attribute that its type does not have."""
        for is_index, name, node in steps:
            members = {member: inner for member, inner, _ in attributes_of(kind)}
            if kind in PRIMITIVE:
                yield EARLY, self.scope.text.error(node, "no indices" if is_index else "of primitive", kind)
            elif not is_index and outer(kind) in ("list", "set"):
                yield EARLY, self.scope.text.error(node, "of list", type_name(kind), name)
            elif not is_index and members and name not in members:
                yield EARLY, self.scope.text.error(node, "no member", name)
            if outer(kind) not in ("list", "map") and (is_index or name not in members):
                return
            kind = members.get(name) or kind[1]


def resource_name(address: Unit) -> str:
    """A resource as references name it.

    >>> resource_name(("managed", "aws_vpc", "main")), resource_name(("data", "aws_ami", "linux"))
    ('aws_vpc.main', 'data.aws_ami.linux')
    """
    return ".".join(address[1:] if address[0] == "managed" else address)
