"""Errors that Terraform finds in a loaded module, unit by unit: references, calls, schemas, cycles, types of values.

As in Terraform, a unit is skipped if something it depends on has failed. Values are checked where Terraform wants a
type: arguments of resources by their schema, of provisioners, `count`, `for_each`, `dynamic` blocks, `ignore_changes`,
and outputs that expose sensitive values. What they are belongs in `values`. Doubts are for the whole module.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import (
    ESCAPE,
    META_BLOCKS,
    RESOURCE_KINDS,
    ScopedExpression,
    Unit,
    elements,
    keyword,
)
from touchstone.validation.hcl.loading import BodySchema, body_errors
from touchstone.validation.hcl.parsing import Argument, Block, descendants, source
from touchstone.validation.hcl.references import check_reference, resource_name
from touchstone.validation.hcl.schema import (
    CONNECTION,
    PROVISIONERS,
    BlockSchema,
    Schemas,
    provisioner_errors,
    resource_errors,
    type_error,
    unsupported_attribute,
)
from touchstone.validation.hcl.values import (
    DYNAMIC,
    PRIMITIVE,
    Doubt,
    Evaluator,
    Value,
    call_errors,
    conversion_problem,
    type_name,
    type_of_constraint,
)
from touchstone.validation.protocol import Diagnostic

# The units that a cycle may contain. A module call's outputs need not depend on all its inputs.
_IN_CYCLES = ("managed", "data", "ephemeral", "local", "var")
_DYNAMIC = BodySchema(("for_each", "iterator", "labels"), ("for_each",), {"content": ()})
_MAX_DEPTH = 20  # of locals that refer to locals, each within an expression
_BUILTIN = {
    ("each", "key"): Value("string"),
    ("count", "index"): Value("number"),
    ("path", "module"): Value("string", "."),
    ("path", "root"): Value("string", "."),
    ("path", "cwd"): Value("string", "/"),
    ("terraform", "workspace"): Value("string"),
}


@dataclass(slots=True)
class _Group:
    """Expressions that Terraform evaluates together: errors found without values, with values, and in calls."""

    early: list[Diagnostic] = field(default_factory=list)
    late: list[Diagnostic] = field(default_factory=list)
    calls: list[Diagnostic] = field(default_factory=list)


@dataclass(slots=True)
class _Unit:
    groups: dict[str, _Group] = field(default_factory=lambda: defaultdict(_Group))
    needs: set[Unit] = field(default_factory=set)
    unknown_type: Diagnostic | None = None
    nonconforming: list[Diagnostic] = field(default_factory=list)
    values: Sequence[Diagnostic] = ()

    def reported(self) -> Sequence[Diagnostic]:
        """The errors that Terraform reports: each kind hides the next."""
        if self.unknown_type:
            return [self.unknown_type]
        by_group = {name: group.early or group.late or group.calls for name, group in self.groups.items()}
        found = [diagnostic for errors in by_group.values() for diagnostic in errors]
        return (found if by_group.get("") else found + self.nonconforming) or self.values


def evaluation_errors(
    blocks: Sequence[Block],
    expressions: Mapping[Block, Sequence[ScopedExpression]],
    declared: Declarations,
    schemas: Schemas,
    merged: bool,
) -> tuple[list[Diagnostic], list[Doubt]]:
    """All evaluation errors of a loaded module, and what is not judged."""
    units: dict[Unit, _Unit] = defaultdict(_Unit)
    for place in (place for places in expressions.values() for place in places):
        if _is_evaluated(place, declared, schemas):
            _check_expression(place, units[place.scope.unit], declared, schemas)
    for resource in (resource for block in blocks for resource in _resources(block)):
        unit = units[(RESOURCE_KINDS[resource.kind], *resource.labels)]
        unit.needs.add(("provider", resource.labels[0].partition("_")[0]))
        unit.unknown_type = type_error(resource, declared, schemas)
        unit.nonconforming += resource_errors(resource, declared, schemas, merged)
    if cycle := cycles({name: unit.needs for name, unit in units.items()}):
        return cycle, []
    values = ValueChecks(blocks, expressions, declared, schemas)
    if not merged:
        values.run()
    for name, errors in values.errors.items():
        units[name].values = errors
    failed = {name: found for name, unit in units.items() if (found := unit.reported())}
    hidden = _dependents(units, failed) if len(failed) > 1 else set()
    return [error for name, found in failed.items() if name not in hidden for error in found], values.doubts


def _resources(block: Block) -> list[Block]:
    if block.kind in RESOURCE_KINDS:
        return [block]
    return [nested for nested in block.body.of_kind("data") if len(nested.labels) == 2] if block.kind == "check" else []


def _is_evaluated(place: ScopedExpression, declared: Declarations, schemas: Schemas) -> bool:
    """Whether Terraform evaluates an expression: not if a resource's schema lacks the part that it is in."""
    schema = schemas.of(declared, place.scope.unit) if place.part else None
    return schema is None or place.part in schema.attributes or place.part in schema.blocks


def _check_expression(place: ScopedExpression, unit: _Unit, declared: Declarations, schemas: Schemas) -> None:
    scope, traversals, group = place.scope, place.traversals, unit.groups[place.scope.group]
    if scope.whole:
        traversals = sorted(traversals, key=lambda traversal: traversal.root_node.start_byte)
    for traversal in traversals:
        check = check_reference(traversal, scope, declared, schemas)
        if check.needs:
            unit.needs.add(check.needs)
        group.early += check.early
        if not scope.whole:
            group.late += check.late
        elif not group.early:  # Terraform checks the elements of depends_on one by one and stops at the first error
            group.early += check.late
    for call in place.calls:
        if call.certain and scope.unit[0] != "check":  # assertions are not evaluated
            group.calls += call_errors(scope.text, call)


def _dependents(units: Mapping[Unit, _Unit], failed: Iterable[Unit]) -> set[Unit]:
    """The units that depend on a failed one, directly or indirectly."""
    needed_by: dict[Unit, set[Unit]] = defaultdict(set)
    for name, unit in units.items():
        for needed in unit.needs - {name}:
            if needed[0] != "module":  # a module's outputs need not depend on all its inputs
                needed_by[needed].add(name)
    return _reached(failed, needed_by)


def _reached(starts: Iterable[Unit], graph: Mapping[Unit, Iterable[Unit]]) -> set[Unit]:
    reached: set[Unit] = set()
    waiting = list(starts)
    while waiting:
        for one in graph.get(waiting.pop(), ()):
            if one not in reached:
                reached.add(one)
                waiting.append(one)
    return reached


def cycles(needs: Mapping[Unit, set[Unit]]) -> list[Diagnostic]:
    """One error per dependency cycle. Terraform lists its units in no fixed order; here they are sorted.

    Self-references do not count.
    """
    graph = {
        unit: {need for need in needed if need[0] in _IN_CYCLES and need != unit and need in needs}
        for unit, needed in needs.items()
        if unit[0] in _IN_CYCLES
    }
    while outside := {unit for unit, needed in graph.items() if not needed}:  # usually all
        graph = {unit: needed - outside for unit, needed in graph.items() if unit not in outside}
    reach = {unit: _reached([unit], graph) for unit in graph}
    found = {frozenset(other for other in reach[unit] if unit in reach[other]) for unit in graph}
    names = (sorted(map(_name_in_cycle, cycle)) for cycle in found if len(cycle) > 1)
    return [Diagnostic("error", f"Cycle: {', '.join(cycle)}") for cycle in sorted(names)]


def _name_in_cycle(unit: Unit) -> str:
    return resource_name(unit) + {"local": " (expand)", "var": " (validation)"}.get(unit[0], "")


@dataclass
class ValueChecks:
    """Checks the values of one loaded module."""

    blocks: Sequence[Block]
    expressions: Mapping[Block, Sequence[ScopedExpression]]
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
            elif block.kind == "variable":
                self._check_default(block)

    def _evaluate(self, block: Block) -> None:
        """Evaluate every expression of a block, for the errors in it and for the checks that follow."""
        for place in self.expressions[block]:
            scope = place.scope
            if scope.whole or scope.unit[0] == "check" or not _is_evaluated(place, self.declared, self.schemas):
                continue
            conditional = scope.group.endswith((".condition", ".error_message"))
            evaluator = Evaluator(scope.text, self._named, scope.bound, "perhaps" if conditional else "sure")
            self._values[place.expression.id] = evaluator.value(place.expression)
            self.errors[scope.unit] += evaluator.errors
            value = self._values[place.expression.id]
            reasons = [doubt.reason for doubt in evaluator.doubts]
            if scope.group.endswith(".error_message") and conversion_problem(value, "string"):
                reasons.append(f"an error message is a string ({source(place.expression)})")
            if place.part and _names(place.expression, resource_name(scope.unit)):
                reasons.append(f"{'.'.join(scope.unit)} refers to itself, which is refused when it is planned")
            argument = source(place.expression.parent or place.expression)
            self.doubts += [Doubt(reason, argument) for reason in reasons]

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
        # Terraform does not know a resource's attributes when it validates, nor whether they are sensitive.
        kind, *rest = names if root in RESOURCE_KINDS else (root, *names)
        unit = (RESOURCE_KINDS.get(root, "managed"), kind, *rest[:1])
        schema = self.schemas.of(self.declared, unit) if len(rest) > 1 else None
        attribute = schema.attributes.get(rest[1]) if schema is not None else None
        return Value(sensitive=None if attribute is not None and attribute.sensitive else False), len(names)

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
        schema = PROVISIONERS.get(block.labels[0])
        if schema is None:
            self.doubts.append(Doubt(f"provisioner {block.labels[0]!r} is not known", _block_text(block)))
            return
        wrong = list(provisioner_errors(block, schema))
        yield from wrong or self._body(block, schema, frozenset({"connection"}))
        for connection in block.body.of_kind("connection"):
            yield from self._connection(connection)

    def _connection(self, block: Block) -> Iterator[Diagnostic]:
        wrong = list(provisioner_errors(block, CONNECTION))
        yield from wrong or self._body(block, CONNECTION)

    def _body(
        self, block: Block, schema: BlockSchema | None, skipped: frozenset[str] = frozenset()
    ) -> Iterator[Diagnostic]:
        """The errors of a body's arguments and nested blocks; without a schema, of its `dynamic` blocks only."""
        for name, argument in block.body.arguments.items():
            attribute = schema.attributes.get(name) if schema is not None else None
            if attribute is None:
                continue
            value = self._value(argument)
            if value.null and attribute.required and block.kind != "provisioner":
                yield block.text.missing_argument(argument.expression, name)
            elif problem := conversion_problem(value, attribute.type):
                detail = f'Inappropriate value for attribute "{name}": {problem}.'
                yield block.text.error(argument.expression, "Incorrect attribute value type", detail)
        for nested in block.body.blocks:
            if nested.kind in skipped or nested.kind == ESCAPE:
                continue
            if nested.kind == "dynamic" and nested.labels:
                yield from self._dynamic(nested, schema)
            else:
                yield from self._body(nested, _nested_schema(schema, nested.kind))

    def _dynamic(self, block: Block, schema: BlockSchema | None) -> Iterator[Diagnostic]:
        wrong = list(body_errors(block, _DYNAMIC))
        if not block.body.of_kind("content"):
            detail = 'A dynamic block must have a nested block of type "content" to describe the body of each block.'
            wrong.append(block.text.error(block.missing, "Missing content block", detail))
        iterator, over = (block.body.arguments.get(name) for name in ("iterator", "for_each"))
        if iterator is not None and keyword(iterator.expression) is None:
            detail = "A single static variable reference is required."
            wrong.append(block.text.error(iterator.expression, "Invalid expression", detail))
        value = self._value(over) if over is not None else Value()
        if over is not None and (value.null or value.kind in PRIMITIVE):
            detail = f"Cannot use a {'null' if value.null else value.kind} value in for_each. A collection is required."
            wrong.append(block.text.error(over.expression, "Invalid dynamic for_each value", detail))
        yield from wrong
        if not wrong and value.parts != ():
            for content in block.body.of_kind("content"):
                yield from self._body(content, _nested_schema(schema, block.labels[0]))

    def _check_repetition(self, block: Block, unit: Unit) -> None:
        arguments = block.body.arguments
        if "count" in arguments:
            self.errors[unit] += _count_errors(block, arguments["count"], self._value(arguments["count"]))
        if "for_each" in arguments:
            self.errors[unit] += _for_each_errors(block, arguments["for_each"], self._value(arguments["for_each"]))

    def _check_default(self, block: Block) -> None:
        """Terraform applies the validation rules of a variable to its default."""
        default, rules = block.body.arguments.get("default"), block.body.of_kind("validation")
        if default is not None and rules:
            written = " ".join([source(default.expression), *map(_block_text, rules)])
            reason = f"whether the default of variable {block.labels[0]!r} is valid is not checked ({written})"
            self.doubts.append(Doubt(reason, _block_text(block)))

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
            wrong = block.text.error(block.header, "Output refers to sensitive values", detail)
            self.errors["output", *block.labels].append(wrong)
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
    if value.null:
        detail = 'The given "count" argument value is null. An integer is required.'
        yield block.text.error(argument.expression, "Invalid count argument", detail)
    elif problem := conversion_problem(value, "number"):
        yield block.text.error(argument.expression, "Incorrect value type", f"Invalid expression value: {problem}.")
    elif isinstance(value.known, float) and (value.known < 0 or value.known % 1):
        detail = 'The given "count" argument value is unsuitable: must be a whole number, zero or greater.'
        yield block.text.error(argument.expression, "Invalid count argument", detail)


def _for_each_errors(block: Block, argument: Argument, value: Value) -> Iterator[Diagnostic]:
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
        yield block.text.error(argument.expression, "Invalid for_each argument", detail)


def _ignored_errors(lifecycle: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    argument = lifecycle.body.arguments.get("ignore_changes")
    for element in (elements(argument.expression) if argument is not None else None) or ():
        name = source(element).strip('"').replace("[", ".").partition(".")[0].strip()
        if name.isidentifier() and name not in schema.names:
            yield unsupported_attribute(lifecycle.text, element, name, schema)


def _names(expression: Node, name: str) -> bool:
    """Whether an expression refers to a resource."""
    around = (node.parent or node for node in descendants(expression) if node.type == "variable_expr")
    return f"{name}." in source(expression) and any(source(node).startswith(name) for node in around)


def _block_text(block: Block) -> str:
    return source(block.kind_node.parent or block.kind_node)
