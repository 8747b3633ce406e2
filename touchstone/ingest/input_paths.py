"""Which files and folders an evaluation looks at, before anything is said about what they hold.

Without `inputs` in the configuration these are the entries of `fixes_dir`. With `inputs` they are the named files, and
everything in the named folders: a folder that is one source, such as the trials of a job, stays whole, and any other is
searched. The content of an entry is classified in `discovery`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError, shown
from touchstone.locations import archive_of, is_mirror, snapshot_of
from touchstone.storage.store import DAGSTER_FOLDER, OUTPUT_NAMES

# A folder of logs has thousands of files; a hundred thousand are a home directory, given by mistake.
_MAX_ENTRIES = 100_000
# Never results, and large.
_SKIPPED_FOLDERS = frozenset({"__MACOSX", "__pycache__", "node_modules", "site-packages"})


def fetch_inputs(config: EvaluationConfig) -> None:
    """Download what changed of the inputs in object storage. Local inputs are read where they are."""
    root, problems = config.fixes_dir, config.problems_csv
    if is_mirror(root) or (problems is not None and is_mirror(problems)):
        from touchstone.storage.input_mirror import fetch

        named = [root / name for name in config.inputs] or [root]
        optional = [root / "problems.csv", *([config.rulings_file] if is_mirror(config.rulings_file) else [])]
        fetch([*named, *([problems] if problems is not None else [])], optional, config.output_dir)


def fetch_problems_csv(config: EvaluationConfig) -> None:
    """Download the problems file only."""
    places = [config.fixes_dir / "problems.csv", *([config.problems_csv] if config.problems_csv is not None else [])]
    if any(map(is_mirror, places)):
        from touchstone.storage.input_mirror import fetch

        fetch([], places)


def input_paths(config: EvaluationConfig) -> list[Path]:
    """The files to look at, and the folders that are read as one source or not at all, sorted.

    What a run writes itself is left out: it would make a second run differ from the first. So are people's rulings.
    """
    root = config.fixes_dir
    if not root.is_dir():
        raise TouchstoneError(f"{root}: no such folder; set 'fixes_dir' in the config")
    found: dict[Path, None] = dict.fromkeys(() if config.inputs else root.iterdir())
    skipped = {_real(folder) for folder in (config.output_dir, config.clones_dir) if folder is not None}
    for name in config.inputs:
        place = root / name
        if not place.exists():
            raise TouchstoneError(f"{place}: no such file or folder")
        for path in _entries(place, skipped) if _is_searched(place, skipped) else [place]:
            found[path] = None
            if len(found) > _MAX_ENTRIES:
                raise TouchstoneError(
                    f"{place}: more than {_MAX_ENTRIES:,} files; name the folder that has the results"
                )
    output = config.output_dir.resolve()
    rulings = config.rulings_file
    return sorted(path for path in found if path != rulings and not _is_own_output(path, output))


def _is_own_output(path: Path, output: Path) -> bool:
    """Whether a path is the output folder, one of its results, or Dagster's home beside or in it."""
    if path.name == DAGSTER_FOLDER:
        return path.parent.resolve() in (output, output.parent)
    if (path.name in OUTPUT_NAMES or path.name.startswith(".")) and path.parent.resolve() == output:
        return True
    # To resolve every path would take longer than to read the start of its file.
    if path.name != output.name and not path.is_symlink():
        return False
    place = _real(path)
    return place == output or place.is_relative_to(output / ".store")


def _real(path: Path) -> Path:
    # Not `resolve`, which may raise an error if links lead in a circle: such a file is refused when it is read.
    return Path(os.path.realpath(path))


def label_of(path: Path, root: Path) -> str:
    """How an input is called in tables and messages: its path below `root`; the name of `root` itself and of others.

    >>> label_of(Path("in/logs/a.eval"), Path("in")), label_of(Path("elsewhere/problems.csv"), Path("in"))
    ('logs/a.eval', 'problems.csv')
    """
    if archive_of(path) is not None:
        path = Path(shown(str(path)))
    return path.relative_to(root).as_posix() if path.is_relative_to(root) and path != root else path.name


def input_files(config: EvaluationConfig) -> list[Path]:
    """The files to look at, with those in folders that are read as one source; nothing for other folders."""
    return [file for path in input_paths(config) for file in files_of_source(path, config.output_dir)]


def files_of_source(path: Path, output: Path) -> list[Path]:
    """The file itself, or everything in a folder that is read as one source but its own results, sorted."""
    if not path.is_dir():
        return [path]
    if _format_of(path) is None:
        return []
    files: list[Path] = []
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = [name for name in subfolders if _real(Path(folder, name)) != output]
        files += [Path(folder, name) for name in names]
    return sorted(file for file in files if file.is_file())


def files_below(folder: Path) -> Iterable[Path]:
    """Everything in a folder, or the folder itself if it is one source."""
    return _entries(folder, set()) if _format_of(folder) is None else [folder]


def _entries(folder: Path, skipped: set[Path]) -> Iterator[Path]:
    for path in sorted((snapshot_of(folder) or folder).iterdir()):
        if _is_searched(path, skipped):
            yield from _entries(path, skipped)
        else:
            yield path


def _is_searched(path: Path, skipped: set[Path]) -> bool:
    """Whether the files in a folder are looked at one by one. A link to a folder is not followed."""
    if path.is_symlink() or not path.is_dir() or path.name in _SKIPPED_FOLDERS or path.name.startswith("."):
        return False
    return _real(path) not in skipped and _format_of(path) is None


def _format_of(folder: Path) -> str | None:
    # Imported here, because most evaluations have no such folder, and looking for changes should start fast.
    from touchstone.ingest.adapters import detect_format

    return detect_format(folder)
