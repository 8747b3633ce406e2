"""A problem's files on disk: list them, write a working copy for the sandbox, and hash their contents.

The originals are only read, never written.
"""

import hashlib
import itertools
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from touchstone.validation.open_beneath import open_beneath
from touchstone.validation.protocol import NoTarget, Tree

LEFT_OUT = frozenset({".git", ".hg", ".svn", ".terraform", ".venv", "__pycache__", "node_modules"})

# A file rewritten within one clock tick of its file system keeps its mtime, so only older files are cached.
_SETTLED_NS = 2_000_000_000

# Marks the hash of an executable file: a working copy keeps the mode, so a program may answer otherwise.
_EXECUTABLE = "x"

_hashes: dict[str, tuple[tuple[int, int, int], str]] = {}


def list_files(root: Path, max_files: int = 20_000, max_bytes: int = 200_000_000) -> tuple[str, ...] | NoTarget:
    """The files under a root, sorted and relative, without version control, caches and installed packages.

    A symlink to a file inside the root is listed and read as that file. Symlinks that lead outside, symlinks to
    directories, and anything that is not a regular file are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     _ = (Path(root) / "main.tf").write_text("")
    ...     (Path(root) / ".git").mkdir()
    ...     _ = (Path(root) / ".git" / "HEAD").write_text("")
    ...     list_files(Path(root))
    ('main.tf',)
    """
    files, total = [], 0
    try:
        for path, size in _regular_files(root.resolve()):
            files.append(path)
            total += size
            if len(files) > max_files:
                return NoTarget("unsafe_input", f"{root} has more than {max_files:,} files")
            if total > max_bytes:
                return NoTarget("unsafe_input", f"the files in {root} have more than {max_bytes:,} bytes")
    except (OSError, RuntimeError) as error:
        return NoTarget("validator_unavailable", f"{root} cannot be read: {error}")
    return tuple(sorted(files))


def _regular_files(root: Path) -> Iterator[tuple[str, int]]:
    """Each file's path relative to the root, and its size."""
    directories = [""]
    while directories:
        directory = directories.pop()
        with os.scandir(root / directory) as entries:
            for entry in entries:
                path = f"{directory}/{entry.name}" if directory else entry.name
                if entry.name in LEFT_OUT:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if not _is_build_output(Path(entry.path)):
                        directories.append(path)
                elif _is_file_inside(root, entry):
                    yield path, entry.stat().st_size


def _is_build_output(directory: Path) -> bool:
    return directory.name == "target" and (directory / "CACHEDIR.TAG").is_file()


def _is_file_inside(root: Path, entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_file(follow_symlinks=False)
    try:
        real = Path(entry.path).resolve()
    except RuntimeError:  # a symlink loop
        return False
    return real.is_relative_to(root) and real.is_file()


def write_working_copy(tree: Tree, destination: Path) -> None:
    """Write a tree into a new directory. Unchanged files are hard-linked where possible, so the copy is read-only.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "main.tf").write_text("before")
    ...     tree = Tree(Path(folder), ("main.tf",)).with_file("main.tf", b"after")
    ...     write_working_copy(tree, Path(folder) / "staged")
    ...     (Path(folder) / "staged" / "main.tf").read_text(), (Path(folder) / "main.tf").read_text()
    ('after', 'before')
    """
    made: set[Path] = set()
    _make_directory(destination, made)
    for path in tree.files:
        _refuse_escape(path)
        target = destination / path
        _make_parents(target, made)
        if path in tree.changed:
            content = tree.changed[path]
            _write(target, content, executable=is_executable(tree, path))
        else:
            _link_or_copy(tree.root, path, target)


def _refuse_escape(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or not {*parts} - {"", "."}:
        raise ValueError(f"{path!r} is no path inside a tree")


def _make_parents(target: Path, made: set[Path]) -> None:
    missing, parent = [], target.parent
    while parent not in made:
        missing.append(parent)
        parent = parent.parent
    for directory in reversed(missing):
        _make_directory(directory, made)


def _make_directory(directory: Path, made: set[Path]) -> None:
    directory.mkdir()
    directory.chmod(0o755)  # regardless of the umask: the sandbox may run as another user
    made.add(directory)


def _link_or_copy(root: Path, path: str, target: Path) -> None:
    """From the opened file, so that nothing can be put in its place meanwhile. A link in the tree becomes a copy."""
    with os.fdopen(open_beneath(root, path), "rb") as source:
        mode = os.fstat(source.fileno()).st_mode
        if mode & stat.S_IROTH and not (root / path).is_symlink() and _link(source.fileno(), target):
            return
        with target.open("xb") as copy:
            shutil.copyfileobj(source, copy)
    target.chmod(0o755 if mode & 0o111 else 0o644)


def _link(source: int, target: Path) -> bool:
    try:
        # With `src_dir_fd`, which an absolute path makes irrelevant, Python follows the link in /proc.
        os.link(f"/proc/self/fd/{source}", target, src_dir_fd=source, follow_symlinks=True)
    except OSError:
        return False  # another file system, one without hard links, or another user's file
    return True


def _write(target: Path, content: bytes, *, executable: bool) -> None:
    with open(target, "xb") as file:  # noqa: PTH123
        file.write(content)
        os.fchmod(file.fileno(), 0o755 if executable else 0o644)


def is_executable(tree: Tree, path: str) -> bool:
    """As the fix says; else a file on disk keeps its mode, and a new one is executable if it is a script."""
    original = tree.root / path
    if path in tree.executable:
        return tree.executable[path]
    if original.exists():
        return bool(original.stat().st_mode & 0o111)
    return tree.changed[path].startswith(b"#!")


def file_hashes(root: Path, files: Sequence[str]) -> dict[str, str]:
    """The SHA-256 of each file by path, marked if it is executable. Unchanged files are not read again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     _ = (Path(root) / "main.tf").write_text("")
    ...     file_hashes(Path(root), ["main.tf"])["main.tf"][:8]
    'e3b0c442'
    """
    return {path: _file_hash(root, path) for path in files}


def _changed_hash(content: bytes, executable: bool) -> str:
    return hashlib.sha256(content).hexdigest() + (_EXECUTABLE if executable else "")


def _file_hash(root: Path, path: str) -> str:
    with os.fdopen(open_beneath(root, path), "rb") as file:
        found, place = os.fstat(file.fileno()), str(root / path)
        # Not ctime: hard-linking a file into a working copy changes it.
        state = (found.st_size, found.st_mtime_ns, found.st_ino)
        mark = _EXECUTABLE if found.st_mode & 0o111 else ""
        known = _hashes.get(place)
        if known and known[0] == state:
            return known[1] + mark
        asked_at = time.time_ns()
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if asked_at - found.st_mtime_ns > _SETTLED_NS:
        _hashes[place] = (state, digest)
    return digest + mark


def tree_hash(tree: Tree, base: Mapping[str, str] | None = None) -> str:
    """A hash of a tree's paths and contents, independent of its root and of which files are replaced.

    `base` is the `file_hashes` of the tree's root; with it only the changed contents are hashed and no file is read.

    >>> same = [Tree(Path("a"), ()).with_file("x", b"1"), Tree(Path("b"), ()).with_file("x", b"1")]
    >>> tree_hash(same[0]) == tree_hash(same[1])
    True
    """
    hashes = dict(base or {})
    for path, content in tree.changed.items():
        known = hashes[path].endswith(_EXECUTABLE) if path in hashes else None
        known = tree.executable.get(path, known)
        hashes[path] = _changed_hash(content, is_executable(tree, path) if known is None else known)
    hashes.update(file_hashes(tree.root, [path for path in tree.files if path not in hashes]))
    return hashlib.sha256(b"".join(_entry(path, hashes[path]) for path in sorted(tree.files))).hexdigest()


class HashedTree:
    """A tree on disk, hashed once so that many variants with one changed file can be hashed cheaply."""

    def __init__(self, root: Path, files: tuple[str, ...]) -> None:
        self._files, self._hashes = files, file_hashes(root, files)
        entries = {path: _entry(path, self._hashes[path]) for path in sorted(files)}
        ends = itertools.accumulate(len(entry) for entry in entries.values())
        self._spans = {path: (end - len(entry), end) for (path, entry), end in zip(entries.items(), ends, strict=True)}
        self._listing = memoryview(b"".join(entries.values()))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths in the tree."""
        return self._files

    def has(self, path: str, content_hash: str, *, executable: bool) -> bool:
        """Whether this is still the file that was hashed."""
        return self._hashes[path] == content_hash + (_EXECUTABLE if executable else "")

    def hash_of(self, tree: Tree) -> str:
        """The `tree_hash` of this tree with some contents changed. No file is read.

        >>> here = Tree(Path("nowhere"), ())
        >>> HashedTree(here.root, here.files).hash_of(here) == tree_hash(here)
        True
        """
        if tree.files is not self._files:
            return tree_hash(tree, self._hashes)
        whole, written = hashlib.sha256(), 0
        for path, content in sorted(tree.changed.items()):
            start, end = self._spans[path]
            whole.update(self._listing[written:start])
            executable = tree.executable.get(path, self._hashes[path].endswith(_EXECUTABLE))
            whole.update(_entry(path, _changed_hash(content, executable)))
            written = end
        whole.update(self._listing[written:])
        return whole.hexdigest()


def _entry(path: str, content_hash: str) -> bytes:
    """One file's entry in the listing that is hashed. The length prefix keeps name and hash apart."""
    name = os.fsencode(path)
    return b"%d:%b%b" % (len(name), name, content_hash.encode())
