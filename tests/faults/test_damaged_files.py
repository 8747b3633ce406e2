"""Any file of an output folder damaged: readers see the right figures or one line, and the next run repairs.

Of each kind of file one is damaged in every way, and every third of the others in one. Hard links are one file.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest

from tests.conftest import Folder, copy_of
from tests.faults.conftest import SHARES, Changed
from tests.faults.harness import Arguments, Ended, commands, run, seen, snapshot_ids
from touchstone.storage.snapshots import pin

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[: len(content) // 2],
    "zeroed": lambda content: bytes(len(content)),
    "other": lambda content: b'{"other": "content"}',
    "empty": lambda content: b"",
}


@pytest.fixture(scope="module")
def published(changed: Changed) -> Folder:
    """Two runs, of which the first is pinned as the baseline."""
    folder = changed.copy()
    pin(folder.output, "latest", "first")
    assert run(folder).code == 0
    return folder


def cases(output: Path) -> Iterator[tuple[str, str]]:
    """Files relative to the output folder, with a damage each."""
    inodes, kinds = set[int](), set[str]()
    files = sorted(path for path in output.rglob("*") if path.is_file() and not path.is_symlink())
    for number, path in enumerate(path for path in files if path.name not in ("lock", "lock.holder")):
        if path.stat().st_ino in inodes:
            continue
        inodes.add(path.stat().st_ino)
        name = str(path.relative_to(output))
        kind = re.sub(r"(tables|stamps|checks|csv|snapshots|published)/.*(\.\w+)$", r"\1 \2", name)
        if kind not in kinds:
            yield from ((name, damage) for damage in DAMAGES)
        elif number % 7 == 0:
            yield name, list(DAMAGES)[number % len(DAMAGES)]
        kinds.add(kind)


def table_of(name: str) -> str:
    """The table that a file has rows of, else any."""
    return next((parent.name for parent in Path(name).parents if parent.parent.name == "tables"), "tiers")


def reading(folder: Folder, table: str) -> list[Arguments]:
    data = ("--data", folder.output)
    return [
        ("snapshots", "list", *data),
        ("show", "m", "a", *data),
        ("compare", "previous", "latest", *data),
        ("export", table, *data, "--format", "csv"),
    ]


def read(folder: Folder, table: str) -> list[Ended]:
    """The commands' output, whatever folder it is about."""
    ended = commands(folder, reading(folder, table))
    return [replace(each, stdout=each.stdout.replace(str(folder.root), "")) for each in ended]


def assert_right_or_one_line(before: Ended, after: Ended) -> None:
    assert "Traceback" not in after.stderr and "Error:" not in after.stderr, after.stderr
    if after.code < 2:
        assert (after.code, after.stdout) == (before.code, before.stdout) or after.stderr
    else:
        assert after.code == 2 and after.error


def assert_repaired(folder: Folder, damaged: Path, expected: dict[str, str]) -> None:
    done = run(folder)
    if done.code != 0:
        assert re.search(r"delete|remove", done.error) and str(damaged) in done.error, done.stderr
        damaged.unlink()
        done = run(folder)
    assert done.code == 0, done.stderr
    found = seen(folder.output)
    # A snapshot whose manifest is lost is skipped, and the history does without it; so it does without lost pins.
    lost = damaged.name in ("manifest.json", "pins.json")
    skipped = ("history", "trends", "change_points", "problem_history") if lost else ()
    assert {name: found[name] for name in found if name not in skipped} == {
        name: expected[name] for name in expected if name not in skipped
    }
    snapshot_ids(folder.output)


@pytest.fixture(scope="module")
def read_before(published: Folder) -> Callable[[str], list[Ended]]:
    """What the commands print about a table before anything is damaged."""
    return cache(partial(read, published))


def damage_and_repair(
    published: Folder, read_before: Callable[[str], list[Ended]], place: Path, name: str, damage: str
) -> None:
    folder = copy_of(published, place)
    damaged = folder.output / name
    with damaged.open("r+b") as file:  # In place: all names of the file show the damage.
        content = DAMAGES[damage](file.read())
        file.seek(0)
        file.truncate()
        file.write(content)
    for before, after in zip(read_before(table_of(name)), read(folder, table_of(name)), strict=True):
        assert_right_or_one_line(before, after)
    assert_repaired(folder, damaged, seen(published.output))
    shutil.rmtree(place)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "damage"),
    [(".store/draft/tables/pass_at_k/pass_at_k.parquet", "zeroed"), ("snapshots/pins.json", "truncated")],
)
def test_a_damaged_file_is_repaired_by_the_next_run(
    published: Folder, read_before: Callable[[str], list[Ended]], tmp_path: Path, name: str, damage: str
) -> None:
    damage_and_repair(published, read_before, tmp_path / "copy", name, damage)


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(SHARES))
def test_so_is_any_other(
    published: Folder, read_before: Callable[[str], list[Ended]], tmp_path: Path, share: int
) -> None:
    wrong = {}
    for name, damage in list(cases(published.output))[share::SHARES]:
        try:
            place = tmp_path / f"{len(wrong)} {Path(name).name} {damage}"
            damage_and_repair(published, read_before, place, name, damage)
        except AssertionError as error:
            wrong[name, damage] = str(error)
    assert wrong == {}
