"""The files of a repository at a commit, copied from a local clone.

`git archive` would leave out what `.gitattributes` marks as `export-ignore`, often the tests. So the commit is checked
out with an index of its own, which touches neither the clone's index nor its working tree.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from touchstone.errors import TouchstoneError

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
# The files as they were committed, without a helper program of the clone's configuration.
_OPTIONS = ("-c", "core.autocrlf=false", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_MAX_MESSAGE = 300


def find_clone(folder: Path, names: Sequence[str]) -> Path:
    """The first of these folders, with or without `.git` at the end, that is a git repository."""
    for name in names:
        for path in (folder / name, folder / f"{name}.git"):
            if (path / ".git").exists() or (path / "HEAD").is_file():
                return path
    raise TouchstoneError(f"{folder}: there is no clone {' or '.join(names)}; clone the repository there")


def require_commit(clone: Path, commit: str) -> None:
    """Raise an error of one line if the clone does not have the commit."""
    if not _COMMIT.fullmatch(commit):
        raise TouchstoneError(f"{commit[:100]!r} is no commit: 7 to 64 hexadecimal digits belong here")
    if _git(clone, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        raise TouchstoneError(f"{clone}: has no commit {commit}; run `git fetch --all` there")


def copy_tree(clone: Path, commit: str, target: Path) -> None:
    """Write the files of a commit into an empty folder, without `.git`."""
    index = target.with_name(f".{target.name}.index")
    settings = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(target), "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        for arguments in (("read-tree", commit), ("checkout-index", "--all", "--quiet")):
            done = _git(clone, *arguments, **settings)
            if done.returncode:
                said = " ".join(done.stderr.decode(errors="replace").split())[:_MAX_MESSAGE]
                raise TouchstoneError(f"{clone}: commit {commit} cannot be copied ({said or 'git failed'})")
    finally:
        index.unlink(missing_ok=True)


def _git(clone: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    folder = clone / ".git" if (clone / ".git").exists() else clone
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", *_OPTIONS, f"--git-dir={folder}", *arguments],
            cwd=settings.get("GIT_WORK_TREE", clone),
            env=environment | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise TouchstoneError("git is not on PATH; install it to import from clones") from None
