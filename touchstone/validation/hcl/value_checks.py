"""Whether values have the types that Terraform wants where they are written: arguments of resources by their schema,
of provisioners, `count`, `for_each`, `dynamic` blocks, `ignore_changes`, and outputs that expose sensitive values.

Errors are by unit; doubts are for the whole module.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from touchstone.validation.hcl.body_schema import BodySchema, body_errors
from touchstone.validation.hcl.conformance import provisioner_errors
from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import elements, keyword
from touchstone.validation.hcl.schema import BlockSchema, Schemas, connection_schema, provisioner_schema
from touchstone.validation.hcl.scopes import ESCAPE, META_BLOCKS, RESOURCE_KINDS, Scope, Unit, scoped_expressions
from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.hcl.tree import Argument, Block, source
from touchstone.validation.hcl.types import (
    DYNAMIC,
    PRIMITIVE,
    Value,
    conversion_problem,
    type_name,
    type_of_constraint,
)
from touchstone.validation.hcl.values import Doubt, Evaluator, Findings
from touchstone.validation.protocol import Diagnostic

_DYNAMIC = BodySchema(("for_each", "iterator", "labels"), ("for_each",), {"content": ()})
_MODES = {"data": "data", "ephemeral": "ephemeral", "resource": "managed"}
_MAX_DEPTH = 20  # of locals that refer to locals, each within an expression
_STRINGS = Value("string")
_BUILTIN = {
    ("each", "key"): _STRINGS,
    ("count", "index"): Value("number"),
    ("path", "module"): Value("string", "."),
    ("path", "root"): Value("string", "."),
    ("path", "cwd"): Value("string", "/"),
    ("terraform", "workspace"): _STRINGS,
}


@dataclass
class ValueChecks:
    """Checks the values of one loaded module."""

    blocks: Sequence[Block]
    declared: Declarations
    schemas: Schemas
    errors: dict[Unit, list[Diagnostic]] = field(default_factory=lambda: defaultdict(list))
    doubts: list[Doubt] = field(default_factory=list)
    _values: dict[int, Value] = field(default_factory=dict)
    _locals: dict[str, Value | tuple[Block, Argument]] = field(default_factory=dict)
    _variables: dict[str, Value] = field(default_factory=dict)
    _depth: int = 0

    def run(self) -> None:
        """Check all blocks."""
        for block in self.blocks:
            if block.kind == "locals":
                self._locals |= {name: (block, argument) for name, argument in block.body.arguments.items()}
            elif block.kind == "variable":
                self._variables[block.labels[0]] = _variable(block)
        for block in self.blocks:
            self._evaluate(block)
            if block.kind in RESOURCE_KINDS:
                self._check_resource(block)
            elif block.kind == "module":
                self._check_repetition(block, ("module", *block.labels))
                names = ", ".join(sorted(block.body.arguments))
                reason = f"module {block.labels[0]!r} is not looked into, so whether it takes {names} is not checked"
                self.doubts.append(Doubt(reason, _block_text(block)))
            elif block.kind == "output":
                self._check_output(block)

    def _evaluate(self, block: Block) -> None:
        """Evaluate every expression of a block, for the errors in it and for the checks that follow."""
        for place in scoped_expressions(block, merged=False):
            scope = place.scope
            if scope.whole or not self._is_expected(scope, place.part):
                continue
            findings = Findings()
            conditional = scope.group.endswith((".condition", ".error_message"))
            evaluator = Evaluator(scope.text, self._named, scope.bound, findings, "perhaps" if conditional else "sure")
            self._values[place.expression.id] = evaluator.value(place.expression)
            self.errors[scope.unit] += findings.errors
            self.doubts += [Doubt(doubt.reason, _argument_text(place.expression)) for doubt in findings.doubts]
            if place.part and len(scope.unit) == 3 and self._names_itself(place.expression, scope):
                reason = f"{'.'.join(scope.unit)} refers to itself, which is refused when it is planned"
                self.doubts.append(Doubt(reason, _argument_text(place.expression)))

    def _is_expected(self, scope: Scope, part: str) -> bool:
        schema = self.schemas.of(self.declared, scope.unit) if part else None
        return schema is None or part in schema.attributes or part in schema.blocks

    def _names_itself(self, expression: Node, scope: Scope) -> bool:
        mode, *names = scope.unit
        prefix = "" if mode == "managed" else f"{mode}."
        return f"{prefix}{'.'.join(names)}." in f" {source(expression)} " and any(
            source(node).startswith(f"{prefix}{'.'.join(names)}") for node in _references(expression)
        )

    def _named(self, root: str, names: Sequence[str]) -> tuple[Value, int]:
        """The value of a reference and the number of names that it uses."""
        if not names:
            return Value(), 0
        if root == "var":
            return self._variables.get(names[0], Value()), 1
        if root == "local":
            return self._local(names[0]), 1
        if (root, names[0]) in _BUILTIN:
            return _BUILTIN[root, names[0]], 1
        if root in ("each", "count", "path", "terraform", "module", "self"):
            return Value(), len(names)
        kind, *rest = [*names] if root in _MODES else [root, *names]
        return self._resource_attribute(_MODES.get(root, "managed"), kind, rest), len(names)

    def _resource_attribute(self, mode: str, kind: str, names: Sequence[str]) -> Value:
        """Terraform does not know a resource's attributes when it validates, nor whether they are sensitive."""
        schema = self.schemas.of(self.declared, (mode, kind, names[0])) if len(names) > 1 else None
        attribute = schema.attributes.get(names[1]) if schema is not None else None
        return Value(sensitive=None) if attribute is not None and attribute.sensitive else Value()

    def _local(self, name: str) -> Value:
        found = self._locals.get(name, Value())
        if isinstance(found, Value):
            return found
        if self._depth >= _MAX_DEPTH:
            return Value()
        self._locals[name] = Value()  # where locals refer to each other
        self._depth += 1
        block, argument = found
        value = Evaluator(block.text, self._named, certainty="forgiven").value(argument.expression)
        self._locals[name] = value
        self._depth -= 1
        return value

    def _value(self, argument: Argument) -> Value:
        return self._values.get(argument.expression.id, Value())

    def _check_resource(self, block: Block) -> None:
        unit: Unit = (RESOURCE_KINDS[block.kind], *block.labels)
        self._check_repetition(block, unit)
        schema = self.schemas.of(self.declared, unit)
        self.errors[unit] += self._body(block, schema, META_BLOCKS)
        for nested in block.body.blocks:
            if nested.kind == "lifecycle" and schema is not None:
                self.errors[unit] += _ignored_errors(nested, schema)
            elif nested.kind == "provisioner" and block.kind == "resource" and nested.labels:
                self.errors[unit] += self._provisioner(nested)
            elif nested.kind == "connection" and block.body.of_kind("provisioner"):
                self.errors[unit] += self._connection(nested)

    def _provisioner(self, block: Block) -> Iterator[Diagnostic]:
        schema = provisioner_schema(block.labels[0])
        if schema is None:
            self.doubts.append(Doubt(f"provisioner {block.labels[0]!r} is not known", _block_text(block)))
            return
        wrong = list(provisioner_errors(block, schema))
        yield from wrong or self._body(block, schema, frozenset({"connection"}))
        for connection in block.body.of_kind("connection"):
            yield from self._connection(connection)

    def _connection(self, block: Block) -> Iterator[Diagnostic]:
        wrong = list(provisioner_errors(block, connection_schema()))
        yield from wrong or self._body(block, connection_schema(), frozenset())

    def _body(self, block: Block, schema: BlockSchema | None, skipped: frozenset[str]) -> Iterator[Diagnostic]:
        """The errors of a body's arguments and nested blocks; without a schema, of its `dynamic` blocks only."""
        for name, argument in block.body.arguments.items():
            attribute = schema.attributes.get(name) if schema is not None else None
            if attribute is None:
                continue
            value = self._value(argument)
            span = block.text.span(argument.expression)
            if value.null and attribute.required:
                detail = f'The argument "{name}" is required, but no definition was found.'
                yield block.text.error(span, "Missing required argument", detail)
            elif problem := conversion_problem(value, attribute.type):
                detail = f'Inappropriate value for attribute "{name}": {problem}.'
                yield block.text.error(span, "Incorrect attribute value type", detail)
        for nested in block.body.blocks:
            if nested.kind in skipped or nested.kind == ESCAPE:
                continue
            if nested.kind == "dynamic" and nested.labels:
                yield from self._dynamic(nested, schema)
            else:
                yield from self._body(nested, _nested_schema(schema, nested.kind), frozenset())

    def _dynamic(self, block: Block, schema: BlockSchema | None) -> Iterator[Diagnostic]:
        wrong = list(body_errors(block, _DYNAMIC))
        if not block.body.of_kind("content"):
            detail = 'A dynamic block must have a nested block of type "content" to describe the body of each block.'
            wrong.append(block.text.error(block.missing, "Missing content block", detail))
        iterator, over = (block.body.arguments.get(name) for name in ("iterator", "for_each"))
        if iterator is not None and keyword(iterator.expression) is None:
            detail = "A single static variable reference is required."
            wrong.append(block.text.error(block.text.span(iterator.expression), "Invalid expression", detail))
        value = self._value(over) if over is not None else Value()
        if over is not None and (value.null or value.kind in PRIMITIVE):
            detail = f"Cannot use a {'null' if value.null else value.kind} value in for_each. A collection is required."
            wrong.append(block.text.error(block.text.span(over.expression), "Invalid dynamic for_each value", detail))
        yield from wrong
        if not wrong and value.parts != ():
            for content in block.body.of_kind("content"):
                yield from self._body(content, _nested_schema(schema, block.labels[0]), frozenset())

    def _check_repetition(self, block: Block, unit: Unit) -> None:
        arguments = block.body.arguments
        if "count" in arguments:
            self.errors[unit] += _count_errors(block, arguments["count"], self._value(arguments["count"]))
        if "for_each" in arguments:
            self.errors[unit] += _for_each_errors(block, arguments["for_each"], self._value(arguments["for_each"]))

    def _check_output(self, block: Block) -> None:
        argument, flag = block.body.arguments.get("value"), block.body.arguments.get("sensitive")
        if argument is None or (flag is not None and source(flag.expression) != "false"):
            return
        sensitive = self._value(argument).sensitive
        if sensitive:
            detail = (
                "To reduce the risk of accidentally exporting sensitive data that was intended to be only internal, "
                "Terraform requires that any root module output containing sensitive data be explicitly marked as "
                "sensitive, to confirm your intent."
            )
            span = block.header
            self.errors["output", *block.labels].append(
                block.text.error(span, "Output refers to sensitive values", detail)
            )
        elif sensitive is None:
            reason = f"output {block.labels[0]!r} may expose a sensitive value, which is refused when it is planned"
            self.doubts.append(Doubt(reason, _block_text(block)))


def _variable(block: Block) -> Value:
    kind, flag = block.body.arguments.get("type"), block.body.arguments.get("sensitive")
    sensitive = flag is not None and source(flag.expression) == "true"
    return Value(type_of_constraint(kind.expression) if kind is not None else DYNAMIC, sensitive=sensitive)


def _nested_schema(schema: BlockSchema | None, kind: str) -> BlockSchema | None:
    nested = schema.blocks.get(kind) if schema is not None else None
    return nested.block if nested is not None else None


def _count_errors(block: Block, argument: Argument, value: Value) -> Iterator[Diagnostic]:
    span = block.text.span(argument.expression)
    if value.null:
        detail = 'The given "count" argument value is null. An integer is required.'
        yield block.text.error(span, "Invalid count argument", detail)
    elif problem := conversion_problem(value, "number"):
        yield block.text.error(span, "Incorrect value type", f"Invalid expression value: {problem}.")
    elif isinstance(value.known, float) and (value.known < 0 or value.known % 1):
        detail = 'The given "count" argument value is unsuitable: must be a whole number, zero or greater.'
        yield block.text.error(span, "Invalid count argument", detail)


def _for_each_errors(block: Block, argument: Argument, value: Value) -> Iterator[Diagnostic]:
    span = block.text.span(argument.expression)
    if value.sensitive:
        detail = (
            "Sensitive values, or values derived from sensitive values, cannot be used as for_each arguments. If used, "
            "the sensitive value could be exposed as a resource instance key."
        )
    elif value.null:
        detail = (
            'The given "for_each" argument value is unsuitable: the given "for_each" argument value is null. A map, or '
            "set of strings is allowed."
        )
    elif value.kind in (*PRIMITIVE, "list", "tuple"):
        detail = (
            'The given "for_each" argument value is unsuitable: the "for_each" argument must be a map, or set of '
            f"strings, and you have provided a value of type {type_name(value.type)}."
        )
    else:
        return
    # A map whose values alone are sensitive is accepted.
    if not value.sensitive or value.parts is None:
        yield block.text.error(span, "Invalid for_each argument", detail)


def _ignored_errors(lifecycle: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    argument = lifecycle.body.arguments.get("ignore_changes")
    for element in (elements(argument.expression) if argument is not None else None) or ():
        name = source(element).strip('"').replace("[", ".").partition(".")[0].strip()
        if name.isidentifier() and name not in schema.attributes and name not in schema.blocks:
            hint = did_you_mean(name, sorted([*schema.attributes, *schema.blocks]))
            detail = f'This object has no argument, nested block, or exported attribute named "{name}".{hint}'
            yield lifecycle.text.error(lifecycle.text.span(element), "Unsupported attribute", detail)


def _references(expression: Node) -> Iterator[Node]:
    """The expressions around each name, innermost."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        waiting += node.named_children
        if node.type == "variable_expr" and node.parent is not None:
            yield node.parent


def _argument_text(expression: Node) -> str:
    holder = expression.parent if expression.parent is not None else expression
    return source(holder)


def _block_text(block: Block) -> str:
    return source(block.kind_node.parent) if block.kind_node.parent is not None else block.kind


def check_values(
    blocks: Iterable[Block], declared: Declarations, schemas: Schemas
) -> tuple[Mapping[Unit, list[Diagnostic]], list[Doubt]]:
    """The errors of each unit, and the doubts."""
    checks = ValueChecks(list(blocks), declared, schemas)
    checks.run()
    return checks.errors, checks.doubts
