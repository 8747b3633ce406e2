"""A problem's files on disk: list them, write a working copy for the sandbox, and hash their contents.

The originals are only read, never written.
"""

import hashlib
import itertools
import os
import shutil
import stat
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from touchstone.regular_files import open_beneath
from touchstone.validation.protocol import NoTarget, Tree

_NPM = "node_modules"
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".terraform", ".venv", "__pycache__", _NPM})

# Marks the hash of an executable file: a working copy keeps the mode, so a program may answer otherwise.
_EXECUTABLE = "x"


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
                    is_build_output = entry.name == "target" and Path(entry.path, "CACHEDIR.TAG").is_file()
                    directories += [] if is_build_output else [path]
                elif _is_file_inside(root, entry):
                    yield path, entry.stat().st_size


def installed_packages(root: Path) -> dict[str, Path]:
    """The folders of npm packages below a root, by path; for a root without one, the nearest of the folders around it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as clones:
    ...     (Path(clones) / "shop" / "web" / "node_modules").mkdir(parents=True)
    ...     (Path(clones) / "node_modules").mkdir()
    ...     _ = (Path(clones) / "shop" / "package.json").write_text("{}")
    ...     sorted(installed_packages(Path(clones) / "shop"))
    ['node_modules', 'web/node_modules']
    """
    found: dict[str, Path] = {}
    for folder, below, files in os.walk(root):
        inside = Path(folder)
        if _NPM in below or (inside == root and "package.json" in files):
            nearest = next((each / _NPM for each in (inside, *inside.parents) if (each / _NPM).is_dir()), None)
            found |= {str((inside / _NPM).relative_to(root)): nearest.resolve()} if nearest is not None else {}
        below[:] = [name for name in below if name not in LEFT_OUT]
    return found


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
    with open_beneath(root, path) as source:
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
    """The SHA-256 of each file by path, marked if it is executable.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     _ = (Path(root) / "main.tf").write_text("")
    ...     file_hashes(Path(root), ["main.tf"])["main.tf"][:8]
    'e3b0c442'
    """
    return {path: _file_hash(root, path) for path in files}


def _file_hash(root: Path, path: str) -> str:
    with open_beneath(root, path) as file:
        mark = _EXECUTABLE if os.fstat(file.fileno()).st_mode & 0o111 else ""
        return hashlib.file_digest(file, "sha256").hexdigest() + mark


class HashedTree:
    """A tree on disk, hashed once so that many variants with a few changed files can be hashed cheaply."""

    def __init__(self, root: Path, files: tuple[str, ...]) -> None:
        self.files, self._hashes = files, file_hashes(root, files)
        entries = [_entry(path, self._hashes[path]) for path in sorted(files)]
        self._paths, self._starts = sorted(files), [0, *itertools.accumulate(map(len, entries))]
        self._listing = memoryview(b"".join(entries))

    def has(self, path: str, content_hash: str, *, executable: bool) -> bool:
        """Whether this is still the file that was hashed."""
        return self._hashes[path] == content_hash + (_EXECUTABLE if executable else "")

    def hash_of(self, tree: Tree) -> str:
        """A hash of the paths and contents of a variant of this tree, whatever its root is. No file is read.

        >>> empty = HashedTree(Path("nowhere"), ())
        >>> changed = [Tree(Path(root), ()).with_file("x", b"1") for root in "ab"]
        >>> empty.hash_of(changed[0]) == empty.hash_of(changed[1]) != empty.hash_of(Tree(Path("a"), ()))
        True
        """
        gone = set(self.files).difference(tree.files) if tree.files is not self.files else ()
        entries = dict.fromkeys(gone, b"")
        for path, content in tree.changed.items():
            known = self._hashes[path].endswith(_EXECUTABLE) if path in self._hashes else None
            known = tree.executable.get(path, known)
            executable = is_executable(tree, path) if known is None else known
            entries[path] = _entry(path, hashlib.sha256(content).hexdigest() + (_EXECUTABLE if executable else ""))
        whole, written = hashlib.sha256(), 0
        for path, entry in sorted(entries.items()):
            place = bisect_left(self._paths, path)
            whole.update(self._listing[written : self._starts[place]])
            whole.update(entry)
            written = self._starts[place + (path in self._hashes)]
        whole.update(self._listing[written:])
        return whole.hexdigest()


def _entry(path: str, content_hash: str) -> bytes:
    """One file's entry in the listing that is hashed. The length prefix keeps name and hash apart."""
    name = os.fsencode(path)
    return b"%d:%b%b" % (len(name), name, content_hash.encode())
