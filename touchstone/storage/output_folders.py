"""Output folders, local or in object storage: the store of a run, the folder to read results from, and changes to it.

Local ones pay nothing for the others: what talks to object storage is imported for an address only.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from touchstone.locations import address, downloaded, input_location, is_working_copy, output_location
from touchstone.storage.files import refuse_links_out
from touchstone.storage.snapshots import FOLDER, Snapshot, find
from touchstone.storage.store import DRAFT, WAREHOUSE, Store

if TYPE_CHECKING:
    from touchstone.storage.published_objects import PathFilter
    from touchstone.storage.remote_store import RemoteStore


def _remote(root: Path) -> "RemoteStore | None":
    """The store of a working copy; None for a local output folder."""
    if not is_working_copy(root):
        return None
    from touchstone.storage.remote_store import RemoteStore

    return RemoteStore(root)


def open_store(root: Path) -> Store:
    """The store of an output folder, local or the working copy of one in object storage."""
    return _remote(root) or Store(root)


def is_latest(root: Path) -> bool:
    """Whether what is published in an output folder is what its working copy has; always, for a local one."""
    remote = _remote(root)
    return remote is None or remote.is_latest()


def is_of_run(path: str) -> bool:
    """Whether a published file is read by commands about the published run."""
    if path.startswith(f"{FOLDER}/"):
        return is_of_snapshot_list(path)
    return not path.startswith((DRAFT, "csv/", WAREHOUSE))


def is_of_snapshot_list(path: str) -> bool:
    """Whether a published file tells which snapshots there are."""
    return path.startswith(f"{FOLDER}/") and "/tables/" not in path


def is_of_any_run(path: str) -> bool:
    """Whether a published file belongs to the published run or a snapshot."""
    return is_of_run(path) or path.startswith(f"{FOLDER}/")


def is_output(path: str) -> bool:
    """Whether a published file is anything that people or programs read."""
    return not path.startswith(DRAFT)


def results_folder(root: Path, wanted: "PathFilter" = is_of_run) -> Path:
    """The folder to read results from: the output folder itself, or a view of published objects, those wanted."""
    if not is_working_copy(root):
        refuse_links_out(root, "tables", FOLDER)
        return root
    from touchstone.storage.remote_store import View

    return View(root).fetch(wanted)


def find_snapshot(root: Path, name: str) -> Snapshot:
    """A snapshot by its name, see `snapshots.find`, with its tables."""
    if not is_working_copy(root):
        return find(root, name)
    from touchstone.storage.remote_store import View

    view = View(root)
    snapshot = find(view.fetch(is_of_snapshot_list), name)
    view.fetch(lambda path: path.startswith(f"{FOLDER}/{snapshot.id}/"))
    return snapshot


def folder_at(text: str) -> Path:
    """The local path of what is at a path or address: results of a run if any are published there, else files."""
    if downloaded(text) is not None or address(text) is None:
        return input_location(text)
    from touchstone.storage.input_mirror import fetch
    from touchstone.storage.remote_store import View, is_published

    root, files = output_location(text), input_location(text)
    if is_published(root):
        return View(root).fetch(is_of_run)
    fetch([files])
    return files


@contextmanager
def editing(root: Path) -> Iterator[Path]:
    """An output folder whose snapshots are to be changed; in object storage, the change is published at the end."""
    remote = _remote(root)
    with nullcontext() if remote is None else remote.changing():
        yield root


def sweep(root: Path) -> int:
    """Remove objects that are no longer published; returns their number. A local folder has none."""
    remote = _remote(root)
    return 0 if remote is None else remote.objects.sweep()
