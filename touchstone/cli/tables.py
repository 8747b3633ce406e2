"""The other tables that commands print: query results, tables of a run, snapshots, the state of the installation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from touchstone.cli.compact_layout import Column
from touchstone.cli.fitted_table import FittedTable, labels, names, numbers, prose, terminal
from touchstone.text import counted, visible

if TYPE_CHECKING:
    from touchstone.cli.doctor import Requirement
    from touchstone.cli.doctor_deep import Proof
    from touchstone.storage.snapshots import Snapshot


# Nobody reads more on a terminal, and all cells are measured before the first is printed.
_MOST_ROWS = 10_000


def show_result(result: Any) -> None:
    """Print the result of a query, figures rounded to significant digits."""
    from touchstone.publish.result_formats import terminal_cells

    columns, rows, count = terminal_cells(result, _MOST_ROWS)
    table = FittedTable(
        [Column(header, kind) for header, kind in columns],
        hint="use --format csv or a wider terminal",
    )
    for row in rows:
        table.add_row(*row)
    screen = terminal()
    table.print(screen)
    shown = f"{len(rows):,} of " if len(rows) < count else ""
    screen.print(f"{shown}{counted(count, 'row')}{'; --format csv prints all' if shown else ''}")


def show_tables(listing: Iterable[tuple[str, int, list[tuple[str, str]]]]) -> None:
    """Print tables with their row counts and columns."""
    table = FittedTable([*names("table"), *numbers("rows"), *prose("columns")], lines_between_rows=True)
    for name, rows, columns in listing:
        described = [Text.assemble(visible(column), " ", (kind, "dim")) for column, kind in columns]
        table.add_row(name, f"{rows:,}", Text(", ").join(described))
    table.print(terminal())


def show_snapshots(snapshots: Sequence["Snapshot"], pinned: Mapping[str, str]) -> None:
    """Print snapshots, newest first."""
    pinned_as: dict[str, list[str]] = {}
    for pin, identity in pinned.items():
        pinned_as.setdefault(identity, []).append(pin)
    columns = [*labels("snapshot"), *labels("created (UTC)", rank=2), *names("pinned as", rank=1)]
    table = FittedTable([*columns, *numbers("inputs", rank=3), *prose("validators", rank=4)], compact=True)
    for snapshot in reversed(snapshots):
        pins = ", ".join(sorted(pinned_as.get(snapshot.id, [])))
        files = counted(len(snapshot.inputs), "file")
        table.add_row(snapshot.id, snapshot.made_at, pins, files, snapshot.versions.get("validators", ""))
    table.print(terminal())


def show_doctor(items: Iterable["Requirement"]) -> None:
    """Print what was found, and how to get the rest."""
    table = FittedTable([*names("", "what"), *prose("detail")])
    for item in items:
        word, style = ("ok", "green") if item.met else ("missing", "red") if item.required else ("optional", "yellow")
        table.add_row(Text(word, style=style), item.name, item.detail)
    table.print(terminal())


def show_proofs(proofs: Iterable["Proof"]) -> None:
    """Print what was proven on known answers."""
    styles = {"proven": "green", "wrong": "red", "not available": "yellow"}
    table = FittedTable([*names("", "what"), *prose("detail")])
    for proof in proofs:
        table.add_row(Text(proof.result, style=styles[proof.result]), proof.name, proof.detail)
    table.print(terminal())
