"""Snapshots: what a finished run found, frozen under `snapshots/<id>/` of the output folder, so that any two compare.

```
snapshots/<id>/tables/<table>/*.parquet   hard links to the run's tables, without the texts of fixes
snapshots/<id>/manifest.json              when, from which config and inputs, by which versions
snapshots/<id>/figures.parquet            its figures per model and tier in long form, for the table `history`
snapshots/pins.json                       names that people gave
```

Finding, naming and removing them is here; making them is in `freezing`. This module is part of the fast commands.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.files import replacing

FOLDER = "snapshots"
MANIFEST = "manifest.json"
RESERVED = ("latest", "previous")
_PINS = "pins.json"


@dataclass(frozen=True)
class Snapshot:
    """A frozen run. `fingerprint` is the same for two runs that made the same tables."""

    id: str
    made_at: str
    fingerprint: str
    config_hash: str
    inputs: Mapping[str, str]
    versions: Mapping[str, str]
    rows: Mapping[str, int]
    folder: Path = field(compare=False)

    @property
    def tables(self) -> Path:
        """Where its tables lie."""
        return self.folder / "tables"


def list_snapshots(root: Path) -> list[Snapshot]:
    """All snapshots of an output folder, oldest first. A folder without a readable manifest is none."""
    found = []
    for manifest in sorted((root / FOLDER).glob(f"*/{MANIFEST}")):
        try:
            told = json.loads(manifest.read_text())
            found.append(Snapshot(folder=manifest.parent, **told))
        except (OSError, ValueError, TypeError):
            continue
    return sorted(found, key=lambda snapshot: (snapshot.made_at, snapshot.id))


def find(root: Path, name: str) -> Snapshot:
    """A snapshot by its id or the beginning of it, as `latest` or `previous`, or by a pinned name."""
    snapshots = list_snapshots(root)
    if not snapshots:
        raise TouchstoneError(f"{root}: there are no snapshots; every finished `touchstone run` makes one")
    if name in RESERVED:
        place = -1 if name == "latest" else -2
        if len(snapshots) < -place:
            raise TouchstoneError(f"{root}: there is only one snapshot, so there is no previous one")
        return snapshots[place]
    wanted = pins(root).get(name, name)
    matching = [snapshot for snapshot in snapshots if snapshot.id.startswith(wanted)]
    if len(matching) != 1:
        what = "no snapshot or pin" if not matching else "more than one snapshot"
        raise TouchstoneError(f"{root}: {what} is called '{name}'; see `touchstone snapshots list --data {root}`")
    return matching[0]


def pins(root: Path) -> dict[str, str]:
    """Pinned names and the ids that they stand for."""
    try:
        told = json.loads((root / FOLDER / _PINS).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TouchstoneError(f"{root / FOLDER / _PINS}: cannot be read ({error})") from None
    return {str(name): str(identity) for name, identity in told.items()}


def pin(root: Path, which: str, name: str) -> Snapshot:
    """Give a snapshot a name, or move the name to it."""
    from touchstone.ingest.sources import check_name

    if check_name(name, "pin") in RESERVED:
        raise TouchstoneError(f"'{name}' always means what it says; choose another name")
    snapshot = find(root, which)
    with replacing(root / FOLDER / _PINS) as scratch:
        scratch.write_text(json.dumps({**pins(root), name: snapshot.id}, indent=1, sort_keys=True))
    return snapshot


def prune(root: Path, keep: int) -> list[str]:
    """Remove all but the newest and the pinned ones; returns the ids that are gone."""
    pinned = set(pins(root).values())
    snapshots = list_snapshots(root)
    old = snapshots[: len(snapshots) - keep] if keep else snapshots
    gone = [snapshot for snapshot in old if snapshot.id not in pinned]
    for snapshot in gone:
        shutil.rmtree(snapshot.folder)
    return [snapshot.id for snapshot in gone]
