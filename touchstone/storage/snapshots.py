"""Snapshots: the results of finished runs, frozen under `snapshots/<id>/` in the output folder for comparison.

```
snapshots/<id>/tables/<table>/*.parquet   hard links to the run's tables, without the texts of fixes
snapshots/<id>/manifest.json              time, settings, input hashes and versions
snapshots/<id>/look-*.parquet             its verdicts against a baseline, for the table `sequential_verdicts`
snapshots/pins.json                       pinned names
```

A snapshot is written under a temporary name, renamed, and never changed. Its time is that of the clock, or a second
after the last snapshot if the clock went back, so that sorting by time is sorting by run. Fast commands import this
module, so what only `create_snapshot` needs is imported there.
"""

import calendar
import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from touchstone.errors import TouchstoneError
from touchstone.regular_files import read_json
from touchstone.storage.files import check_name, link_or_copy, replacing
from touchstone.storage.store import digest
from touchstone.text import some_of
from touchstone.vocabulary import VERSION

if TYPE_CHECKING:
    import polars as pl

    from touchstone.storage.store import Store

FOLDER = "snapshots"
MANIFEST = "manifest.json"
RESERVED = ("latest", "previous")
PINS = "pins.json"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
# Tables whose parts are made from input files.
READ_FROM_FILES = ("problems", "attempts", "rulings")


@dataclass(frozen=True)
class Snapshot:
    """A frozen run. `fingerprint` is the same for two runs that made the same tables.

    `inputs` has the SHA-256 of every file as read, by name, with the problems file as `problems`; `attempts` the digest
    of those of each model, `model_versions` what its files call it (`llm_name`). `validation` lists the validators that
    decided the outcomes, `settings` has what the results depend on, by dotted key as JSON. A manifest may lack fields
    or have unknown ones if another version wrote it.
    """

    id: str
    folder: Path = field(compare=False)
    made_at: str = ""
    fingerprint: str = ""
    config_hash: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    validation: Sequence[Mapping[str, str | None]] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    attempts: Mapping[str, str] = field(default_factory=dict)
    model_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> Path:
        """The folder of its tables."""
        return self.folder / "tables"


def create_snapshot(store: "Store", settings: Mapping[str, Any], validation: "pl.DataFrame") -> Snapshot:
    """Freeze the tables of a finished run. If they equal those of the last snapshot, return that one.

    `settings` are those that the results depend on, `validation` lists the validators that decided the outcomes.
    """
    from touchstone.tables import TABLES

    config_hash = digest(settings)
    tables = [table.name for table in TABLES.values() if table.in_snapshots]
    fingerprint = digest([config_hash, {name: store.fingerprint(name) for name in tables}])
    last = next(iter(reversed(list_snapshots(store.root))), None)
    if last is not None and last.fingerprint == fingerprint:
        for name in tables:
            _link_table(store, name, last.tables / name)
        return last
    now = _next_time(store.root, last, fingerprint)
    folder = _folder(store.root, now, fingerprint)
    scratch = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    rows = {name: _link_table(store, name, scratch / "tables" / name) for name in tables}
    made = Snapshot(
        id=folder.name,
        folder=folder,
        made_at=time.strftime(_TIME, time.gmtime(now)),
        fingerprint=fingerprint,
        config_hash=config_hash,
        inputs=store.inputs(*READ_FROM_FILES),
        versions=_versions(validation),
        rows=rows,
        validation=validation.to_dicts(),
        settings=dict(_flat(settings)),
        attempts={model: digest(dict(part.inputs)) for model, part in store.all_parts("attempts").items()},
        model_versions=dict(_model_versions(store)),
    )
    manifest = {name: value for name, value in asdict(made).items() if name != "folder"}
    (scratch / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True))
    scratch.rename(folder)
    return made


def _next_time(root: Path, last: Snapshot | None, fingerprint: str) -> float:
    """Now, but after the last snapshot, and at no time that a folder, readable or not, has in its name."""
    now = time.time()
    with suppress(ValueError):
        if last is not None:
            now = max(now, calendar.timegm(time.strptime(last.made_at, _TIME)) + 1)
    while _folder(root, now, fingerprint).exists():
        now += 1
    return now


def _folder(root: Path, now: float, fingerprint: str) -> Path:
    return root / FOLDER / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{fingerprint[:8]}"


def _link_table(store: "Store", table: str, target: Path) -> int:
    """Link the parts of a table, in place of files that somebody damaged or removed; returns the number of rows."""
    rows = 0
    for made in store.all_parts(table).values():
        linked = target / made.path.name
        if not linked.exists() or not linked.samefile(made.path):
            target.mkdir(parents=True, exist_ok=True)
            with replacing(linked) as scratch:
                link_or_copy(made.path, scratch)
        rows += made.rows
    return rows


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings by dotted key, as JSON. Of environment variables, which may be secret, only digests."""
    for name, value in settings.items():
        if name == "environment":
            yield prefix + name, digest(value)[:12]
        elif isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value, sort_keys=True)


def _model_versions(store: "Store") -> Iterator[tuple[str, str]]:
    import polars as pl

    for model, part in store.all_parts("attempts").items():
        rows = pl.scan_parquet(part.path, glob=False)
        if "llm_name" in rows.collect_schema():
            names = rows.select(pl.col("llm_name").drop_nulls().unique().sort()).collect(engine="streaming")["llm_name"]
            yield model, some_of(names.to_list())


def _versions(validation: "pl.DataFrame") -> dict[str, str]:
    named = validation.select("validator", "validator_version").unique().sort("validator", "validator_version")
    validators = [" ".join(part for part in row if part) for row in named.iter_rows()]
    from touchstone.storage.code_version import library_version, package_code_version

    return {
        "touchstone": VERSION,
        "touchstone code": package_code_version()[:12],
        "python": platform.python_version(),
        **{name: library_version(name) for name in ("polars", "duckdb", "numpy", "scipy", "pyarrow")},
        "validators": "; ".join(validators),
    }


def read_snapshot(folder: Path) -> Snapshot | None:
    """The snapshot in a folder; None if its manifest is missing or unreadable."""
    try:
        return _read(folder / MANIFEST)
    except (OSError, ValueError):
        return None


def list_snapshots(root: Path) -> list[Snapshot]:
    """All readable snapshots of an output folder, oldest first; see `unreadable_snapshots` for the others."""
    found = [read_snapshot(manifest.parent) for manifest in _manifests(root)]
    return sorted(filter(None, found), key=lambda snapshot: (snapshot.made_at, snapshot.id))


def unreadable_snapshots(root: Path) -> dict[str, str]:
    """Snapshot folders whose manifest cannot be read, by name, with the reason."""
    broken = {}
    for manifest in _manifests(root):
        try:
            _read(manifest)
        except (OSError, ValueError) as error:
            broken[manifest.parent.name] = " ".join(str(error).split())
    return broken


def explain_unreadable(root: Path) -> list[str]:
    """One line per snapshot that is skipped because its manifest cannot be read."""
    return [
        f"{root / FOLDER / name / MANIFEST}: cannot be read ({reason}); this snapshot is skipped"
        for name, reason in unreadable_snapshots(root).items()
    ]


def _manifests(root: Path) -> list[Path]:
    # A folder whose name begins with a dot is an unfinished snapshot.
    _refuse_link(root)
    return [path for path in sorted((root / FOLDER).glob(f"*/{MANIFEST}")) if not path.parent.name.startswith(".")]


def _refuse_link(root: Path) -> None:
    if (root / FOLDER).is_symlink():
        raise TouchstoneError(f"{root / FOLDER}: is a link; links in an output folder are not followed, so remove it")


def _read(manifest: Path) -> Snapshot:
    if any(path.is_symlink() for path in (manifest.parent, manifest, manifest.parent / "tables")):
        raise ValueError("it is a link, which is not followed in an output folder")
    found = manifest.stat()
    return _read_once(manifest, (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino))


# A run asks a dozen times, and has hundreds of them.
@lru_cache(maxsize=2048)
def _read_once(manifest: Path, _: tuple[int, ...]) -> Snapshot:
    folder, stated = manifest.parent, read_json(manifest)
    if not isinstance(stated, dict):
        raise ValueError("not a JSON object")
    if "made_at" not in stated:
        raise ValueError("made_at: missing")
    values: dict[str, Any] = {}
    for known in fields(Snapshot):
        # The folder's name is the id: an id from elsewhere could be the path of something else.
        if known.name in stated and known.name not in ("folder", "id"):
            problem = _wrong_type(stated[known.name], *_TYPES.get(known.name, (str,)))
            if problem:
                raise ValueError(f"{known.name}: {problem}")
            values[known.name] = stated[known.name]
    return Snapshot(id=folder.name, folder=folder, **values)


# The type of a field, and of the values in it. Other fields are text.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "inputs": (dict, str),
    "versions": (dict, str),
    "rows": (dict, int),
    "validation": (list, dict, str, type(None)),
    "settings": (dict, str),
    "attempts": (dict, str),
    "model_versions": (dict, str),
}


def _wrong_type(value: object, kind: type, *inner: type) -> str:
    """How a value of a manifest differs from its type; empty if it does not."""
    if not isinstance(value, kind):
        return f"expected {kind.__name__}, got {type(value).__name__}"
    if isinstance(value, list):
        return next(filter(None, (_wrong_type(each, *inner) for each in value)), "")
    if isinstance(value, dict):
        wrong = [each for each in value.values() if not isinstance(each, inner)]
        return f"expected {inner[0].__name__}, got {type(wrong[0]).__name__}" if wrong else ""
    return ""


def find(root: Path, name: str) -> Snapshot:
    """A snapshot by id or unique prefix of an id, `latest`, `previous`, or pinned name."""
    snapshots = list_snapshots(root)
    broken = "".join(f"; {line}" for line in explain_unreadable(root))
    if not snapshots:
        raise TouchstoneError(f"{root}: there are no snapshots; every finished `touchstone run` makes one{broken}")
    if name in RESERVED:
        place = -1 if name == "latest" else -2
        if len(snapshots) < -place:
            raise TouchstoneError(f"{root}: there is only one snapshot, so there is no previous one{broken}")
        return snapshots[place]
    wanted = pins(root).get(name, name)
    matching = [snapshot for snapshot in snapshots if snapshot.id.startswith(wanted)]
    if len(matching) != 1:
        what = "no snapshot or pin" if not matching else "more than one snapshot"
        raise TouchstoneError(
            f"{root}: {what} is called '{name}'; see `touchstone snapshots list --data {root}`{broken}"
        )
    return matching[0]


def find_if_known(root: Path, name: str) -> Snapshot | None:
    """The snapshot of that name; None if nothing has that name yet."""
    ids = [manifest.parent.name for manifest in _manifests(root)]
    known = name in pins(root) or name in ids or (name in RESERVED and ids)
    return find(root, name) if known else None


def pins(root: Path) -> dict[str, str]:
    """Snapshot ids by pinned name."""
    _refuse_link(root)
    try:
        stated = read_json(root / FOLDER / PINS)
        if not isinstance(stated, dict) or not all(isinstance(identity, str) for identity in stated.values()):
            raise ValueError("not an object of names and snapshot ids")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TouchstoneError(f"{root / FOLDER / PINS}: cannot be read ({error}); correct or delete it") from None
    return stated


def pin_names(pins: Mapping[str, str]) -> dict[str, list[str]]:
    """The pinned names of each snapshot, sorted."""
    names: dict[str, list[str]] = {}
    for name, snapshot in sorted(pins.items()):
        names.setdefault(snapshot, []).append(name)
    return names


def pin(root: Path, which: str, name: str) -> Snapshot:
    """Pin a name to a snapshot, moving the name if it is in use."""
    if check_name(name, "pin") in RESERVED:
        raise TouchstoneError(f"'{name}' is reserved; choose another pin name")
    snapshot = find(root, which)
    with replacing(root / FOLDER / PINS) as scratch:
        scratch.write_text(json.dumps({**pins(root), name: snapshot.id}, indent=1, sort_keys=True))
    return snapshot


def prune(root: Path, keep: int) -> list[str]:
    """Remove all snapshots but the newest `keep` and the pinned ones; returns the removed ids."""
    pinned = set(pins(root).values())
    snapshots = list_snapshots(root)
    old = snapshots[: len(snapshots) - keep] if keep else snapshots
    gone = [snapshot for snapshot in old if snapshot.id not in pinned]
    for snapshot in gone:
        # Not a snapshot from here on, even if the removal is cut short.
        snapshot.folder.rename(snapshot.folder.with_name(f".{snapshot.id}.gone"))
    for folder in (root / FOLDER).glob(".*.gone"):
        shutil.rmtree(folder)
    return [snapshot.id for snapshot in gone]
