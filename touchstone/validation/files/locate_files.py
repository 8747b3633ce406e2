"""Locate a problem's file: turn the names in a row into a directory and a file that are safe to read.

The names are untrusted input: none may lead outside the clones folder, by `..`, a symlink or otherwise. A refused or
missing file is an outcome with a reason. Listing the files of the tree belongs in `working_copy`.
"""

import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from touchstone.validation.protocol import NoTarget

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 1024


@dataclass(frozen=True)
class LocatedFile:
    """The tree's root, the module's directory in it, and the file in that. No path contains a symlink."""

    root: Path
    working_directory: str
    filename: str


def locate(
    clones_dir: Path,
    filename: str | None,
    working_directory: str | None,
    project_name: str | None,
    oid: str,
    *,
    whole_folder: bool = False,
) -> LocatedFile | NoTarget:
    """Locate a problem's file and the root of the tree that validation may read.

    Paths may start with the name of the clones folder, and the filename with the working directory.
    The module is `working_directory`, else the directory named after the oid if it contains the file, else the file's
    own directory. The root is the project that contains the module, else the module itself. With `whole_folder`, the
    problem need not name a file; the module is then `working_directory`, `project_name` or the oid.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as clones:
    ...     module = Path(clones) / "shop" / "network"
    ...     module.mkdir(parents=True)
    ...     _ = (module / "main.tf").write_text("")
    ...     found = locate(Path(clones), "main.tf", "shop/network", "shop", "1")
    ...     found.root.name, found.working_directory, found.filename
    ('shop', 'network', 'main.tf')
    >>> locate(Path("clones"), "../main.tf", None, None, "1").reason
    "the filename '../main.tf' has a part '..'"
    """
    directory, project = _not_blank(working_directory), _not_blank(project_name)
    name = _not_blank(filename)
    whole = whole_folder and name is None
    file = PurePosixPath(name or "")
    if reason := _refusal(name, directory, project, oid, whole=whole):
        return NoTarget("unsafe_input", reason)
    try:
        clones = clones_dir.resolve()
        if whole:
            module = clones / (directory or project or oid)
            missing = None if module.is_dir() else NoTarget("validator_unavailable", f"there is no directory {module}")
            return missing or _located(clones, module, None, project)
        file, directory, project = _within_clones(clones_dir, clones, file, directory, project)
        module, file = _module(clones, file, directory, oid)
        return _missing(clones, module, module / file) or _located(clones, module, module / file, project)
    except (OSError, RuntimeError) as error:  # RuntimeError: a symlink loop
        return NoTarget("validator_unavailable", f"{clones_dir / file} cannot be looked at: {error}")


def _not_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _refusal(name: str | None, directory: str | None, project: str | None, oid: str, *, whole: bool) -> str:
    """Why a name is refused. The oid is a directory's name if nothing else names one."""
    if not whole and not PurePosixPath(name or "").parts:
        return "the filename is empty"
    given = {"filename": name, "working_directory": directory, "project_name": project}
    reasons = {what: path_refusal(what, path) for what, path in given.items() if path is not None}
    if directory is None and not (whole and project):
        reasons["working_directory"] = _oid_refusal(oid)
    return next((reasons[what] for what in given if reasons.get(what)), "")


def _oid_refusal(oid: str) -> str:
    if "/" in oid:
        return f"the oid {oid!r} would be a directory's name and has a slash"
    if not oid.strip("."):
        return f"the oid {oid!r} would be a directory's name and has only dots"
    return path_refusal("oid", oid)


def path_refusal(what: str, path: str) -> str:
    """Why a path is refused without touching the disk; empty if it is acceptable."""
    name = f"the {what} {path[:80]!r}"
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in path):
        return f"{name} has control characters"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"{name} has more than {MAX_PATH_BYTES:,} bytes"
    if "\\" in path:
        return f"{name} has a backslash"
    if path.startswith("/"):
        return f"{name} is an absolute path"
    for part in path.split("/"):
        if part == "..":
            return f"{name} has a part '..'"
        if part.startswith(("~", "-")):
            return f"{name} has a part that starts with {part[0]!r}"
        if len(part.encode()) > MAX_NAME_BYTES:
            return f"{name} has a part with more than {MAX_NAME_BYTES} bytes"
    return ""


def _within_clones(
    clones_dir: Path, clones: Path, file: PurePosixPath, directory: str | None, project: str | None
) -> tuple[PurePosixPath, str | None, str | None]:
    """The paths without the name of the clones folder, where they start with it and lead nowhere with it."""

    def inside(path: str) -> str:
        first, _, rest = path.strip().removeprefix("./").partition("/")
        named = first in (clones_dir.name, clones.name) and not _is_there(clones / first)
        return rest.lstrip("/") or "." if named else path

    module = inside(directory) if directory else None
    named = PurePosixPath(inside(file.as_posix()))
    if module:
        repeated = named.is_relative_to(module) and not _is_there(clones / module / file)
        named = named.relative_to(module) if repeated else file
    return named, module, inside(project) if project else None


def _module(clones: Path, file: PurePosixPath, directory: str | None, oid: str) -> tuple[Path, PurePosixPath]:
    """The module's directory and the file's path in it, not yet checked."""
    if directory:
        return clones / directory, file
    own = clones / oid
    if own.is_dir() and _is_there(own / file):
        return own, file
    return clones / file.parent, PurePosixPath(file.name)


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _missing(clones: Path, module: Path, file: Path) -> NoTarget | None:
    for directory in (clones, module):
        if not directory.is_dir() and not directory.is_symlink():
            return NoTarget("validator_unavailable", f"there is no directory {directory}")
    # A path that leads outside is refused as unsafe, whether it exists or not.
    if _is_there(file) or not file.resolve().is_relative_to(clones):
        return None
    return NoTarget("validator_unavailable", f"file not found: {file}")


def _located(clones: Path, module: Path, file: Path | None, project: str | None) -> LocatedFile | NoTarget:
    """The resolved paths, if they stay inside the clones folder and the module."""
    real_module, real_file = module.resolve(), (file or module).resolve()
    for path, real in ((module, real_module), (file or module, real_file)):
        if not real.is_relative_to(clones):
            return NoTarget("unsafe_input", f"{path} leads out of {clones} by a symlink")
    if file is not None:
        if file.is_symlink():
            return NoTarget("unsafe_input", f"{file} is a symlink")
        if not file.is_file():
            return NoTarget("unsafe_input", f"{file} is {'a directory' if file.is_dir() else 'no regular file'}")
        if not real_file.is_relative_to(real_module):
            return NoTarget("unsafe_input", f"{file} leads out of {module} by a symlink")
    root = real_module
    if project:
        folder = (clones / project).resolve()
        inside = folder.is_relative_to(clones) and real_module.is_relative_to(folder)
        root = folder if inside and folder.is_dir() else root
    directory, name = real_module.relative_to(root).as_posix(), real_file.relative_to(real_module).as_posix()
    return LocatedFile(root, *("" if path == "." else path for path in (directory, name)))
