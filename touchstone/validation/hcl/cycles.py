"""Dependency cycles between units."""

from collections.abc import Mapping

from touchstone.validation.hcl.scopes import Unit
from touchstone.validation.protocol import Diagnostic

_FOLLOWED = ("managed", "data", "ephemeral", "local", "var")


def cycles(needs: Mapping[Unit, set[Unit]]) -> list[Diagnostic]:
    """One error per cycle. Terraform lists its units in no fixed order; here they are sorted.

    Modules are not followed, since a call's outputs need not depend on all its inputs. Self-references do not count.
    """
    graph = {
        unit: {need for need in needed if need[0] in _FOLLOWED and need != unit and need in needs}
        for unit, needed in needs.items()
        if unit[0] in _FOLLOWED
    }
    names = [
        sorted(_display(unit) for unit in cycle) for cycle in _strongly_connected_components(graph) if len(cycle) > 1
    ]
    return [Diagnostic("error", f"Cycle: {', '.join(cycle)}") for cycle in sorted(names)]


def _display(unit: Unit) -> str:
    if unit[0] == "local":
        return f"local.{unit[1]} (expand)"
    if unit[0] == "var":
        return f"var.{unit[1]} (validation)"
    return ".".join(unit[1:] if unit[0] == "managed" else unit)


def _strongly_connected_components(graph: Mapping[Unit, set[Unit]]) -> set[frozenset[Unit]]:
    """The sets of units that reach each other. Units outside any cycle, usually all, are removed first."""
    left = dict(graph)
    while gone := {unit for unit, needed in left.items() if not needed}:
        left = {unit: needed - gone for unit, needed in left.items() if unit not in gone}
    reach = {unit: _reached(unit, left) for unit in left}
    return {frozenset(other for other in reach[unit] if unit in reach[other]) for unit in left}


def _reached(start: Unit, graph: Mapping[Unit, set[Unit]]) -> set[Unit]:
    reached: set[Unit] = set()
    waiting = [start]
    while waiting:
        for need in graph[waiting.pop()]:
            if need not in reached:
                reached.add(need)
                waiting.append(need)
    return reached
