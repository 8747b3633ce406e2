"""The declarations that a fix removed: deleting the code that is wrong does not repair it.

A declaration is an address, such as `("resource", "aws_vpc", "main")`. It may get another name. Its type may change
where an error of the unmodified problem quotes the old one. It may vanish if the reference fix removes it too.

Four kinds of addresses are not declarations: `("schema", "aws_vpc", "managed")` says that resources of a type are
checked against its schema; `("checked", "overrides")` that there is nothing of a kind that could hide errors;
`("unread", "resource", "0")` that a broken file has a header of this type that cannot be read; `("json", …)` is an
address in JSON syntax, of which less is checked.
"""

import re
from collections import Counter
from collections.abc import Iterable

from touchstone.validation.protocol import Diagnostic, Report

_QUOTED = re.compile(r'"([^"]*)"')
Address = tuple[str, ...]
SCHEMA, CHECKED, UNREAD, JSON = "schema", "checked", "unread", "json"
_WEAKENED = {
    "overrides": "Override files could hide errors",
    "provider functions": "Provider functions cannot be checked",
    "missing modules": "Called modules do not exist",
    "resources in JSON": "Resources in JSON syntax are not checked against the provider schema",
    "OpenTofu files": "Terraform does not read OpenTofu's files",
}


def removed_blocks(baseline: Report, report: Report, reference: Report | None = None) -> list[Diagnostic]:
    """An error for every declaration of the baseline that the fix removed.

    >>> before = Report("failed", "static", declared=(("output", "a"), ("output", "b")))
    >>> after = Report("passed", "static", declared=(("output", "b"),))
    >>> [found.summary for found in removed_blocks(before, after)]
    ['Block removed: output "a"']
    """
    if baseline.declared is None or report.compiled is False:
        return []
    if report.declared is None:
        detail = "The fix may have removed blocks, and what it declares cannot be read."
        return [Diagnostic("error", "Blocks cannot be read", detail)]
    quoted = {word for found in baseline.diagnostics for word in _QUOTED.findall(f"{found.summary} {found.detail}")}
    removed = _removed(baseline.declared, report.declared, quoted)
    if removed and reference is not None and reference.declared is not None:
        removed -= _removed(baseline.declared, reference.declared, quoted)
    return [_diagnostic(address) for address in sorted(removed)]


def _removed(before: Iterable[Address], after: Iterable[Address], quoted: set[str]) -> set[Address]:
    """The addresses that are gone and that no new address replaces."""
    before, after = set(before), set(after)
    gone, new = sorted(address for address in before - after if address[0] != UNREAD), after - before
    renamed = Counter(address[:-1] for address in new)
    retyped: dict[tuple[int, ...], set[Address]] = {}
    removed = set()
    for address in gone:
        if address[0] == JSON and address[1:] in after:
            continue
        if renamed[address[:-1]] > 0:
            renamed[address[:-1]] -= 1
            continue
        if renamed[address] > 0 or address[:-1] in new:  # a label more or less: one of the two numbers is an error
            continue
        kept = tuple(place for place, word in enumerate(address) if word not in quoted)
        if kept not in retyped:
            retyped[kept] = {_words(other, kept) for other in new}
        if len(kept) == len(address) or _words(address, kept) not in retyped[kept]:
            removed.add(address)
    # Every new block that replaces no other may be one whose header could not be read.
    spare = Counter(_kind(address) for address in new)
    spare.subtract(_kind(address) for address in gone if address not in removed)
    for address in sorted(address for address in before - after if address[0] == UNREAD):
        spare[address[1]] -= 1
        if spare[address[1]] < 0:
            removed.add(address)
    return removed


def _kind(address: Address) -> str:
    return address[1] if address[0] == JSON else address[0]


def _words(address: Address, places: tuple[int, ...]) -> Address:
    """The words at some places, after their total number: an address keeps its number of labels."""
    return (str(len(address)), *(address[place] for place in places if place < len(address)))


def _diagnostic(address: Address) -> Diagnostic:
    kind, *names = address
    if kind == SCHEMA:
        detail = "Its resources are checked against the provider schema in the unmodified problem, and not in the fix."
        return Diagnostic("error", f'Resource type "{names[0]}" escapes its schema', detail)
    if kind == CHECKED:
        detail = "The unmodified problem has none, and what the fix does there is not checked."
        return Diagnostic("error", _WEAKENED[names[0]], detail)
    if kind == UNREAD:
        detail = "The unmodified problem has more of them than the fix declares."
        return Diagnostic("error", f"Block removed: {names[0]} with an unreadable header", detail)
    if kind == JSON:
        kind, *names = names
    shown = " ".join([kind, *(f'"{name}"' for name in names)])
    return Diagnostic("error", f"Block removed: {shown}", "The unmodified problem declares it, and the fix does not.")
