"""Results as they are published: tables, CSV files, report, warehouse and snapshots, copied out of an output folder."""

import shutil
from pathlib import Path

from touchstone.publish.interchange.results import Run
from touchstone.storage.snapshots import FOLDER
from touchstone.storage.store import PUBLISHED_NAMES


def write_published_files(run: Run, folder: Path) -> list[str]:
    """Copy every published file. The copy can be read, compared and queried, but a run in it starts anew."""
    results = run.tables_dir.parent
    for name in (*PUBLISHED_NAMES, FOLDER):
        # Not what is still being written, such as an unfinished snapshot.
        if (results / name).is_dir():
            shutil.copytree(results / name, folder / name, ignore=shutil.ignore_patterns(".*"))
        elif (results / name).is_file():
            shutil.copy2(results / name, folder / name)
    return []
