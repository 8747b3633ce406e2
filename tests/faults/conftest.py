"""An evaluation with published results whose inputs have changed since, and what the next run makes of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from tests.conftest import Folder, copy_of
from tests.faults.harness import run, seen, snapshot_ids

CHANGED = "oid,iteration_id,plausible_fix\na,1,true\na,2,true\nb,1,false\nb,2,true\n"
SHARES = 4


@dataclass
class Changed:
    """`before` is what readers see of the last run, `after` what they see once a run without faults is done."""

    folder: Folder
    place: Path
    before: dict[str, str]
    after: dict[str, str]
    operations: list[str]
    _numbers: Iterator[int] = field(default_factory=count)

    def copy(self) -> Folder:
        return copy_of(self.folder, self.place / str(next(self._numbers)))

    def places(self, share: int) -> list[int]:
        """The file operations that one of the nightly tests strikes at: up to five of a kind, from first to last."""
        kinds: dict[str, list[int]] = {}
        for at, operation in enumerate(self.operations, start=1):
            kind = re.sub(r"/(tables|stamps|checks|csv)/.*|\.\w{8}\.tmp$", r"/\1", operation)
            kinds.setdefault(kind, []).append(at)
        chosen = {same[(len(same) - 1) * nth // 4] for same in kinds.values() for nth in range(5)}
        return sorted(chosen)[share::SHARES]

    def assert_whole(self, folder: Folder) -> None:
        """Readers see the last results or the new ones, never a mixture."""
        assert seen(folder.output) in (self.before, self.after)

    def assert_repaired_by_the_next_run(self, folder: Folder) -> None:
        """A run without faults gives the same tables to the byte, one snapshot more, and leaves nothing behind."""
        done = run(folder)
        assert done.code == 0, done.stderr
        assert seen(folder.output) == self.after
        assert len(snapshot_ids(folder.output)) == 2
        # Commands without the lock write hashes, so a run leaves new ones alone.
        left = [str(path) for path in folder.output.rglob("*.tmp") if not path.name.startswith(".hashes.json.")]
        assert left == []


@pytest.fixture(scope="session")
def changed(finished_with_warehouse: Folder, tmp_path_factory: pytest.TempPathFactory) -> Changed:
    """The small evaluation, with other outcomes than those that were published."""
    place = tmp_path_factory.mktemp("changed")
    folder = copy_of(finished_with_warehouse, place / "folder")
    folder.fixes("m", CHANGED)
    clean = copy_of(folder, place / "clean")
    before, done = seen(clean.output), run(clean)
    assert done.code == 0, done.stderr
    assert len(snapshot_ids(clean.output)) == 2
    after = seen(clean.output)
    assert after != before
    return Changed(folder, place, before, after, done.operations)
