"""What Terraform finds once a module is loaded: references, calls and schemas, unit by unit.

As in Terraform, a unit is not looked at where something it depends on has failed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from touchstone.validation.hcl.conformance import resource_errors, type_error
from touchstone.validation.hcl.cycles import cycles
from touchstone.validation.hcl.declarations import Declarations
from touchstone.validation.hcl.expressions import Call, Mention, mentions
from touchstone.validation.hcl.functions import call_errors
from touchstone.validation.hcl.places import RESOURCE_KINDS, Setting, Unit, places
from touchstone.validation.hcl.references import Judgement, judge
from touchstone.validation.hcl.schema import Schemas
from touchstone.validation.hcl.tree import Block
from touchstone.validation.protocol import Diagnostic


@dataclass(slots=True)
class _Group:
    """What Terraform evaluates in one go, with what it finds before it needs values, with them, and in calls."""

    early: list[Diagnostic] = field(default_factory=list)
    late: list[Diagnostic] = field(default_factory=list)
    calls: list[Diagnostic] = field(default_factory=list)

    def reported(self) -> list[Diagnostic]:
        """Each kind hides the next."""
        return self.early or self.late or self.calls


@dataclass(slots=True)
class _Unit:
    groups: dict[str, _Group] = field(default_factory=dict)
    needs: set[Unit] = field(default_factory=set)
    unknown_type: Diagnostic | None = None
    nonconforming: list[Diagnostic] = field(default_factory=list)

    def reported(self) -> list[Diagnostic]:
        if self.unknown_type:
            return [self.unknown_type]
        if not self.groups:
            return self.nonconforming
        found = [diagnostic for group in self.groups.values() for diagnostic in group.reported()]
        return found if "" in self.groups else found + self.nonconforming


class Statement(NamedTuple):
    """What one expression mentions, and where it stands."""

    setting: Setting
    part: str
    mentions: list[Mention]
    calls: list[Call]


def statements(block: Block, merged: bool) -> Iterator[Statement]:
    """What a root block says. `merged` says that override files may add to it."""
    for place in places(block, merged):
        found, calls = mentions(place.expression, place.setting.bound)
        if found or calls:
            yield Statement(place.setting, place.part, found, calls)


def evaluation_errors(
    blocks: Iterable[Block], spoken: Iterable[Statement], declared: Declarations, schemas: Schemas, merged: bool
) -> list[Diagnostic]:
    """Everything that is wrong with a loaded module's blocks and what they say."""
    units: dict[Unit, _Unit] = defaultdict(_Unit)
    for statement in spoken:
        _evaluate(statement, units[statement.setting.unit], declared, schemas)
    for block in blocks:
        for resource in _resources(block):
            unit = units[(RESOURCE_KINDS[resource.kind], *resource.labels)]
            unit.needs.add(("provider", resource.labels[0].partition("_")[0]))
            unit.unknown_type = type_error(resource, declared, schemas)
            unit.nonconforming += resource_errors(resource, declared, schemas, merged)
    if cycle := cycles({name: unit.needs for name, unit in units.items()}):
        return cycle
    failed = {name: found for name, unit in units.items() if (found := unit.reported())}
    hidden = _dependents(units, set(failed)) if len(failed) > 1 else set()
    return [diagnostic for name, found in failed.items() if name not in hidden for diagnostic in found]


def _resources(block: Block) -> list[Block]:
    if block.kind in RESOURCE_KINDS:
        return [block]
    return [nested for nested in block.body.of_kind("data") if len(nested.labels) == 2] if block.kind == "check" else []


def _evaluate(statement: Statement, unit: _Unit, declared: Declarations, schemas: Schemas) -> None:
    setting = statement.setting
    if statement.part and not _has_part(setting.unit, statement.part, declared, schemas):
        return
    for mention in sorted(statement.mentions, key=_start) if setting.whole else statement.mentions:
        judgement = judge(mention, setting, declared, schemas)
        if judgement.needs:
            unit.needs.add(judgement.needs)
        if judgement.early or judgement.late:
            _note(judgement, setting, unit.groups.setdefault(setting.group, _Group()))
    for call in statement.calls:
        if call.certain and (wrong := list(call_errors(setting.text, call))):
            unit.groups.setdefault(setting.group, _Group()).calls += wrong


def _note(judgement: Judgement, setting: Setting, group: _Group) -> None:
    group.early += judgement.early
    if not setting.whole:
        group.late += judgement.late
    elif not group.early:  # the elements of depends_on are looked up one by one, until something is wrong
        group.early += judgement.late


def _has_part(resource: Unit, part: str, declared: Declarations, schemas: Schemas) -> bool:
    """Whether a resource has such a part at all; Terraform does not look into what it does not expect."""
    schema = schemas.of(declared, resource)
    return schema is None or part in schema.attributes or part in schema.blocks


def _start(mention: Mention) -> int:
    return mention.root_node.start_byte


def _dependents(units: dict[Unit, _Unit], failed: set[Unit]) -> set[Unit]:
    """The units that need a failed one, directly or through others."""
    needed_by: dict[Unit, set[Unit]] = defaultdict(set)
    for name, unit in units.items():
        for needed in unit.needs - {name}:
            if needed[0] != "module":  # what a call is given need not be what its outputs are made of
                needed_by[needed].add(name)
    reached: set[Unit] = set()
    waiting = list(failed)
    while waiting:
        for dependent in needed_by.get(waiting.pop(), ()):
            if dependent not in reached:
                reached.add(dependent)
                waiting.append(dependent)
    return reached
