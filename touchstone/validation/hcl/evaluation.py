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
from touchstone.validation.hcl.loading import includes_terraform
from touchstone.validation.hcl.parsing import Argument, Block, descendants, did_you_mean, source
from touchstone.validation.hcl.references import EARLY, LATE, Reference, resource_name
from touchstone.validation.hcl.schema import (
    CONNECTION,
    OPEN,
    PROVISIONERS,
    BlockSchema,
    NestedSchema,
    Schemas,
    body_errors,
    own,
    provisioner_errors,
    resource_errors,
    type_error,
)
from touchstone.validation.hcl.values import (
    DYNAMIC,
    PRIMITIVE,
    Doubt,
    Evaluator,
    Value,
    call_errors,
    conversion_problem,
    literal_value,
    type_name,
    type_of_constraint,
)
from touchstone.validation.protocol import Diagnostic

_IN_CALLS = LATE + 1
# The units that a cycle may contain. A module call's outputs need not depend on all its inputs.
_IN_CYCLES = ("managed", "data", "ephemeral", "local", "var")
_DYNAMIC = own("for_each! iterator labels", {"content": NestedSchema(OPEN)})
_MAX_DEPTH = 20  # of locals that refer to locals, each within an expression
_BUILTIN = {
    ("each", "key"): Value("string"),
    ("count", "index"): Value("number"),
    ("path", "module"): Value("string", "."),
    ("path", "root"): Value("string", "."),
    ("path", "cwd"): Value("string", "/"),
    ("terraform", "workspace"): Value("string"),
}


def _groups() -> dict[str, dict[int, list[Diagnostic]]]:
    return defaultdict(lambda: defaultdict(list))


@dataclass(slots=True)
class _Unit:
    """The errors of one unit. `groups` are expressions that Terraform evaluates together, with their errors by rank."""

    groups: dict[str, dict[int, list[Diagnostic]]] = field(default_factory=_groups)
    needs: set[Unit] = field(default_factory=set)
    unknown_type: Diagnostic | None = None
    nonconforming: list[Diagnostic] = field(default_factory=list)
    values: list[Diagnostic] = field(default_factory=list)

    def reported(self) -> list[Diagnostic]:
        """The errors that Terraform reports: each kind hides the next."""
        if self.unknown_type:
            return [self.unknown_type]
        found = [error for ranks in self.groups.values() for error in ranks[min(ranks)]]
        return (found if "" in self.groups else found + self.nonconforming) or self.values


def _resources(block: Block) -> list[Block]:
    if block.kind in RESOURCE_KINDS:
        return [block]
    return [nested for nested in block.body.of_kind("data") if len(nested.labels) == 2] if block.kind == "check" else []


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
class LoadedModule:
    """A module without load errors: its blocks, the expressions in them and those in JSON, and the errors of its units.

    If override files are `merged`, no values are checked, and nothing counts as missing.
    """

    blocks: Sequence[Block]
    expressions: Mapping[Block, Sequence[ScopedExpression]]
    declared: Declarations
    schemas: Schemas
    merged: bool
    doubts: list[Doubt] = field(default_factory=list)
    _units: dict[Unit, _Unit] = field(default_factory=lambda: defaultdict(_Unit))
    _values: dict[int, Value] = field(default_factory=dict)
    _locals: dict[str, Value | tuple[Block, Argument]] = field(default_factory=dict)
    _variables: dict[str, Value] = field(default_factory=dict)
    _depth: int = 0

    def errors(self) -> list[Diagnostic]:
        """All evaluation errors. What is not judged is then in `doubts`."""
        for place in (place for places in self.expressions.values() for place in places):
            if self._is_evaluated(place):
                self._check_references(place)
        for resource in (resource for block in self.blocks for resource in _resources(block)):
            self._check_schema(resource)
        units = self._units
        if cycle := cycles({name: unit.needs for name, unit in units.items()}):
            return cycle
        if not self.merged:
            self._check_values()
        failed = {name: found for name, unit in units.items() if (found := unit.reported())}
        needed_by: dict[Unit, set[Unit]] = defaultdict(set)
        for name, unit in units.items() if len(failed) > 1 else ():
            for needed in unit.needs - {name}:
                if needed[0] != "module":  # a module's outputs need not depend on all its inputs
                    needed_by[needed].add(name)
        hidden = _reached(failed, needed_by)
        return [error for name, found in failed.items() if name not in hidden for error in found]

    def _schema_of(self, resource: Unit) -> BlockSchema:
        """The schema of a declared resource; open if it is unknown."""
        return self.schemas.of(resource, self.declared.provider(resource))

    def _body_schema(self, resource: Unit, block: Block) -> BlockSchema:
        """The schema of a resource's own block; open in JSON syntax, where blocks look like arguments."""
        builtin = resource[1].startswith("terraform_")
        return self._schema_of(resource) if builtin or not block.text.is_json else OPEN

    def _is_evaluated(self, place: ScopedExpression) -> bool:
        """Whether Terraform evaluates an expression: not if a resource's schema lacks the part that it is in."""
        schema = self._schema_of(place.scope.unit) if place.part and not place.scope.text.is_json else OPEN
        return schema.open or place.part in schema.attributes or place.part in schema.blocks

    def _check_references(self, place: ScopedExpression) -> None:
        """Check what an expression refers to, and its calls as far as that needs no values."""
        scope, traversals, unit = place.scope, place.traversals, self._units[place.scope.unit]
        if scope.whole:
            traversals = sorted(traversals, key=lambda traversal: traversal.root_node.start_byte)
        for reference in (Reference(each, scope, self.declared, self._schema_of) for each in traversals):
            if target := reference.target:
                unit.needs.add(target)
            for rank, error in reference.errors():
                if not scope.whole:
                    unit.groups[scope.group][rank].append(error)
                # Terraform checks the elements of depends_on one by one and stops at the first error
                elif rank == EARLY or scope.group not in unit.groups:
                    unit.groups[scope.group][EARLY].append(error)
        for call in place.calls:
            if call.certain and scope.unit[0] != "check":  # assertions are not evaluated
                for error in call_errors(scope.text, call):
                    unit.groups[scope.group][_IN_CALLS].append(error)

    def _check_schema(self, resource: Block) -> None:
        """Check the names in a resource."""
        name = (RESOURCE_KINDS[resource.kind], *resource.labels)
        unit, provider = self._units[name], self.declared.provider(name)
        unit.needs.add(("provider", resource.labels[0].partition("_")[0]))
        unit.unknown_type = type_error(resource, provider.address, self.schemas)
        unit.nonconforming += resource_errors(resource, self._body_schema(name, resource), self.merged)

    def _check_values(self) -> None:
        """Check the values in all blocks."""
        for block in self.blocks:
            if block.kind == "locals":
                self._locals |= {name: (block, argument) for name, argument in block.body.arguments.items()}
            elif block.kind == "variable":
                self._variables[block.labels[0]] = _variable(block)
        for block in self.blocks:
            for place in self.expressions[block]:
                if not place.scope.whole and place.scope.unit[0] != "check" and self._is_evaluated(place):
                    self._evaluate(place)
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
            elif block.kind == "terraform" and (argument := block.body.arguments.get("required_version")) is not None:
                wanted = str(literal_value(argument.expression).known)
                if not all(map(includes_terraform, wanted.split(","))):
                    reason = f"whether your Terraform meets required_version ({wanted}) is not known"
                    self.doubts.append(Doubt(reason, source(argument.expression.parent or argument.expression)))

    def _evaluate(self, place: ScopedExpression) -> None:
        """Evaluate an expression, for the errors in it and for the checks that follow."""
        scope = place.scope
        conditional = scope.group.endswith((".condition", ".error_message"))
        evaluator = Evaluator(scope.text, self._named, scope.bound, "perhaps" if conditional else "sure")
        value = self._values[place.expression.id] = evaluator.value(place.expression)
        self._units[scope.unit].values += evaluator.errors
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
        attribute = self._schema_of(unit).attributes.get(rest[1]) if len(rest) > 1 else None
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
        schema, found = self._body_schema(unit, block), self._units[unit].values
        found += self._body(block, schema, META_BLOCKS)
        for nested in block.body.blocks:
            if nested.kind == "lifecycle" and not schema.open:
                found += _ignored_errors(nested, schema)
            elif nested.kind == "provisioner" and block.kind == "resource" and nested.labels:
                found += self._provisioner(nested)
            elif nested.kind == "connection" and block.body.of_kind("provisioner"):
                found += self._connection(nested)

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

    def _body(self, block: Block, schema: BlockSchema, skipped: frozenset[str] = frozenset()) -> Iterator[Diagnostic]:
        """The errors of a body's arguments and nested blocks; with an open schema, of its `dynamic` blocks only."""
        for name, argument in block.body.arguments.items():
            attribute = schema.attributes.get(name)
            if attribute is None:
                continue
            value = self._value(argument)
            if value.null and attribute.required and block.kind != "provisioner":
                yield block.text.error(argument.expression, "Missing required argument", name)
            elif problem := conversion_problem(value, attribute.type):
                yield block.text.error(argument.expression, "Incorrect attribute value type", name, problem)
        for nested in block.body.blocks:
            if nested.kind in skipped or nested.kind == ESCAPE:
                continue
            if nested.kind == "dynamic" and nested.labels:
                yield from self._dynamic(nested, schema)
            else:
                yield from self._body(nested, schema.nested(nested.kind))

    def _dynamic(self, block: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
        wrong = list(body_errors(block, _DYNAMIC))
        if not block.body.of_kind("content"):
            wrong.append(block.text.error(block.missing, "Missing content block"))
        iterator, over = (block.body.arguments.get(name) for name in ("iterator", "for_each"))
        if iterator is not None and keyword(iterator.expression) is None:
            wrong.append(block.text.error(iterator.expression, "no iterator"))
        value = self._value(over) if over is not None else Value()
        if over is not None and (value.null or value.kind in PRIMITIVE):
            kind = "null" if value.null else value.kind
            wrong.append(block.text.error(over.expression, "Invalid dynamic for_each value", kind))
        yield from wrong
        if not wrong and value.parts != ():
            for content in block.body.of_kind("content"):
                yield from self._body(content, schema.nested(block.labels[0]))

    def _check_repetition(self, block: Block, unit: Unit) -> None:
        for name, problem in (("count", _count_problem), ("for_each", _for_each_problem)):
            argument = block.body.arguments.get(name)
            if argument is None:
                continue
            value = self._value(argument)
            if name == "for_each" and value.kind == "set" and value.type[1] not in ("string", DYNAMIC):
                reason = f"for_each takes sets of strings, and this may be a {type_name(value.type)}"
                self.doubts.append(Doubt(reason, source(argument.expression.parent or argument.expression)))
            if message := problem(value):
                self._units[unit].values.append(block.text.error(argument.expression, *message))

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
            wrong = block.text.error(block.header, "Output refers to sensitive values")
            self._units["output", *block.labels].values.append(wrong)
        elif sensitive is None:
            reason = f"output {block.labels[0]!r} may expose a sensitive value, which is refused when it is planned"
            self.doubts.append(Doubt(reason, _block_text(block)))


def _variable(block: Block) -> Value:
    kind, flag = block.body.arguments.get("type"), block.body.arguments.get("sensitive")
    sensitive = flag is not None and source(flag.expression) == "true"
    return Value(type_of_constraint(kind.expression) if kind is not None else DYNAMIC, sensitive=sensitive)


def _count_problem(value: Value) -> tuple[str, ...]:
    """The message for an unsuitable `count`, with its words; empty if there is none."""
    if value.null:
        return ("null count",)
    if problem := conversion_problem(value, "number"):
        return ("Incorrect value type", problem)
    negative = isinstance(value.known, float) and (value.known < 0 or value.known % 1)
    return ("negative count",) if negative else ()


def _for_each_problem(value: Value) -> tuple[str, ...]:
    if value.sensitive:  # a map whose values alone are sensitive is accepted
        return ("sensitive for_each",) if value.parts is None else ()
    if value.null:
        return ("null for_each",)
    return ("for_each type", type_name(value.type)) if value.kind in (*PRIMITIVE, "list", "tuple") else ()


def _ignored_errors(lifecycle: Block, schema: BlockSchema) -> Iterator[Diagnostic]:
    argument = lifecycle.body.arguments.get("ignore_changes")
    for element in (elements(argument.expression) if argument is not None else None) or ():
        name = source(element).strip('"').replace("[", ".").partition(".")[0].strip()
        if name.isidentifier() and name not in schema.names:
            yield lifecycle.text.error(element, "of resource", name, did_you_mean(name, schema.names))


def _names(expression: Node, name: str) -> bool:
    """Whether an expression refers to a resource."""
    around = (node.parent or node for node in descendants(expression) if node.type == "variable_expr")
    return f"{name}." in source(expression) and any(source(node).startswith(name) for node in around)


def _block_text(block: Block) -> str:
    return source(block.kind_node.parent or block.kind_node)
