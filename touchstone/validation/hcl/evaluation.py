"""Errors that Terraform finds in a loaded module: references, calls and schemas, unit by unit.

As in Terraform, a unit is skipped if something it depends on has failed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from touchstone.validation.hcl.conformance import resource_errors, type_error
from touchstone.validation.hcl.cycles import cycles
from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import Call, Traversal, traversals_and_calls
from touchstone.validation.hcl.functions import call_errors
from touchstone.validation.hcl.references import ReferenceCheck, check_reference
from touchstone.validation.hcl.schema import Schemas
from touchstone.validation.hcl.scopes import RESOURCE_KINDS, Scope, Unit, scoped_expressions
from touchstone.validation.hcl.tree import Block
from touchstone.validation.hcl.value_checks import check_values
from touchstone.validation.hcl.values import Doubt
from touchstone.validation.protocol import Diagnostic


@dataclass(slots=True)
class _Group:
    """Expressions that Terraform evaluates together: errors found without values, with values, and in calls."""

    early: list[Diagnostic] = field(default_factory=list)
    late: list[Diagnostic] = field(default_factory=list)
    calls: list[Diagnostic] = field(default_factory=list)

    def reported(self) -> list[Diagnostic]:
        """The errors that Terraform reports: each kind hides the next."""
        return self.early or self.late or self.calls


@dataclass(slots=True)
class _Unit:
    groups: dict[str, _Group] = field(default_factory=dict)
    needs: set[Unit] = field(default_factory=set)
    unknown_type: Diagnostic | None = None
    nonconforming: list[Diagnostic] = field(default_factory=list)
    values: Sequence[Diagnostic] = ()

    def reported(self) -> list[Diagnostic]:
        return self._found() or list(self.values)

    def _found(self) -> list[Diagnostic]:
        if self.unknown_type:
            return [self.unknown_type]
        if not self.groups:
            return self.nonconforming
        found = [diagnostic for group in self.groups.values() for diagnostic in group.reported()]
        return found if "" in self.groups else found + self.nonconforming


class ExpressionReferences(NamedTuple):
    """The traversals and calls of one expression, with its scope."""

    scope: Scope
    part: str
    traversals: list[Traversal]
    calls: list[Call]


def expression_references(block: Block, merged: bool) -> Iterator[ExpressionReferences]:
    """The references of each expression in a root block. `merged`: override files may add to the block."""
    for place in scoped_expressions(block, merged):
        found, calls = traversals_and_calls(place.expression, place.scope.bound)
        if found or calls:
            yield ExpressionReferences(place.scope, place.part, found, calls)


def evaluation_errors(
    blocks: Iterable[Block],
    expressions: Iterable[ExpressionReferences],
    declared: Declarations,
    schemas: Schemas,
    merged: bool,
) -> tuple[list[Diagnostic], list[Doubt]]:
    """All evaluation errors of a loaded module, and what is not judged."""
    blocks = list(blocks)
    units: dict[Unit, _Unit] = defaultdict(_Unit)
    for references in expressions:
        _evaluate(references, units[references.scope.unit], declared, schemas)
    for block in blocks:
        for resource in _resources(block):
            unit = units[(RESOURCE_KINDS[resource.kind], *resource.labels)]
            unit.needs.add(("provider", resource.labels[0].partition("_")[0]))
            unit.unknown_type = type_error(resource, declared, schemas)
            unit.nonconforming += resource_errors(resource, declared, schemas, merged)
    if cycle := cycles({name: unit.needs for name, unit in units.items()}):
        return cycle, []
    wrong, doubts = ({}, []) if merged else check_values(blocks, declared, schemas)
    for name, errors in wrong.items():
        units[name].values = errors
    failed = {name: found for name, unit in units.items() if (found := unit.reported())}
    hidden = _dependents(units, set(failed)) if len(failed) > 1 else set()
    return [diagnostic for name, found in failed.items() if name not in hidden for diagnostic in found], doubts


def _resources(block: Block) -> list[Block]:
    if block.kind in RESOURCE_KINDS:
        return [block]
    return [nested for nested in block.body.of_kind("data") if len(nested.labels) == 2] if block.kind == "check" else []


def _evaluate(references: ExpressionReferences, unit: _Unit, declared: Declarations, schemas: Schemas) -> None:
    scope = references.scope
    if references.part and not _has_part(scope.unit, references.part, declared, schemas):
        return
    for traversal in sorted(references.traversals, key=_start) if scope.whole else references.traversals:
        check = check_reference(traversal, scope, declared, schemas)
        if check.needs:
            unit.needs.add(check.needs)
        if check.early or check.late:
            _note(check, scope, unit.groups.setdefault(scope.group, _Group()))
    for call in references.calls:
        if call.certain and (wrong := list(call_errors(scope.text, call))):
            unit.groups.setdefault(scope.group, _Group()).calls += wrong


def _note(check: ReferenceCheck, scope: Scope, group: _Group) -> None:
    group.early += check.early
    if not scope.whole:
        group.late += check.late
    elif not group.early:  # Terraform checks the elements of depends_on one by one and stops at the first error
        group.early += check.late


def _has_part(resource: Unit, part: str, declared: Declarations, schemas: Schemas) -> bool:
    """Whether a resource's schema has this part; Terraform does not evaluate unexpected parts."""
    schema = schemas.of(declared, resource)
    return schema is None or part in schema.attributes or part in schema.blocks


def _start(traversal: Traversal) -> int:
    return traversal.root_node.start_byte


def _dependents(units: dict[Unit, _Unit], failed: set[Unit]) -> set[Unit]:
    """The units that depend on a failed one, directly or indirectly."""
    needed_by: dict[Unit, set[Unit]] = defaultdict(set)
    for name, unit in units.items():
        for needed in unit.needs - {name}:
            if needed[0] != "module":  # a module's outputs need not depend on all its inputs
                needed_by[needed].add(name)
    reached: set[Unit] = set()
    waiting = list(failed)
    while waiting:
        for dependent in needed_by.get(waiting.pop(), ()):
            if dependent not in reached:
                reached.add(dependent)
                waiting.append(dependent)
    return reached
