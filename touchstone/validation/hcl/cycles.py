"""Things that need each other, so that nothing can come first."""

from collections.abc import Mapping

from touchstone.validation.hcl.scopes import Unit
from touchstone.validation.protocol import Diagnostic

_FOLLOWED = ("managed", "data", "ephemeral", "local", "var")


def cycles(needs: Mapping[Unit, set[Unit]]) -> list[Diagnostic]:
    """One complaint for each knot of units. Terraform names them in no certain order, so here they are sorted.

    Modules are not followed: a call's outputs need not depend on all that it is given. Nor is a unit that names itself.
    """
    graph = {
        unit: {need for need in needed if need[0] in _FOLLOWED and need != unit and need in needs}
        for unit, needed in needs.items()
        if unit[0] in _FOLLOWED
    }
    names = [sorted(_display(unit) for unit in knot) for knot in _strongly_connected_components(graph) if len(knot) > 1]
    return [Diagnostic("error", f"Cycle: {', '.join(knot)}") for knot in sorted(names)]


def _display(unit: Unit) -> str:
    if unit[0] == "local":
        return f"local.{unit[1]} (expand)"
    if unit[0] == "var":
        return f"var.{unit[1]} (validation)"
    return ".".join(unit[1:] if unit[0] == "managed" else unit)


def _strongly_connected_components(graph: Mapping[Unit, set[Unit]]) -> set[frozenset[Unit]]:
    """The sets of units that all reach each other. What can be ordered is taken away first, and that is mostly all."""
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
