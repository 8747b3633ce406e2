"""`git apply` is the reference for patches: what it applies, we apply with the same files and modes.

Real diffs between two small trees, written by git in many ways, some damaged, are applied to a tree that may have
changed in between. The intended differences are listed here and in docs/validators/fixes.md, each with its reason.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hypothesis import event, given
from hypothesis import strategies as st

from touchstone.validation.fixes.patching import apply_patches
from touchstone.validation.fixes.unified_diff import PatchError, parse_diff
from touchstone.validation.protocol import Tree

File = tuple[bytes, bool]
Files = dict[str, File]

# What git applies and we refuse, because it could mean two things, with our reason.
REFUSED = {
    "a hunk without context, which git puts at the end of the file": "has a hunk without context",
    "lines behind a hunk that its header does not count, which git leaves out": "has lines behind a hunk",
    "a file without its hunk, which git leaves out": "has no hunk|has no second name|ends after|deletes .* not all",
}

LINES = ["a", "b", "c", "", "x y", "\tz", "é", "- d", "-- e", "+f", "#!/bin/sh"]
NAMES = ["x.py", "d/y.py", "sp ace.py", "café.py", "a/z.py", "b/x.py", 'q"uote.py']
names = st.sampled_from(NAMES)


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.sampled_from(LINES), max_size=14))
    end = draw(st.sampled_from(["\n", "\n", "\n", "\r\n"]))
    return (end.join(lines) + (end if draw(st.booleans()) and lines else "")).encode()


trees = st.dictionaries(names, st.tuples(contents(), st.booleans()), min_size=1, max_size=4)


@st.composite
def edited(draw: st.DrawFn, content: bytes) -> bytes:
    lines = content.split(b"\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 2))] = [draw(st.sampled_from(LINES)).encode()] * draw(st.integers(0, 2))
    return b"\n".join(lines)


@st.composite
def changed(draw: st.DrawFn, tree: Files) -> Files:
    """The tree after some files were edited, renamed, copied, deleted, created or made executable."""
    new = dict(tree)
    for _ in range(draw(st.integers(1, 3))):
        how = draw(st.sampled_from(["edit", "edit", "edit", "rename", "copy", "swap", "delete", "create", "mode"]))
        name, other = draw(st.sampled_from(sorted(new) or NAMES)), draw(names)
        if how == "create":
            new[other] = (draw(contents()), draw(st.booleans()))
        elif name not in new:
            continue
        elif how == "edit":
            new[name] = (draw(edited(new[name][0])), new[name][1])
        elif how == "mode":
            new[name] = (new[name][0], not new[name][1])
        elif how == "delete":
            del new[name]
        elif how == "swap" and other in new:
            new[name], new[other] = new[other], new[name]
        elif other not in new:
            new[other] = new.pop(name) if how == "rename" else new[name]
            new[other] = (draw(edited(new[other][0])), new[other][1]) if draw(st.booleans()) else new[other]
    return new


def in_hunks(lines: list[str]) -> list[int]:
    """The numbers of the lines that belong to hunks."""
    found, inside = [], False
    for number, line in enumerate(lines):
        inside = line.startswith("@@ -") or (inside and not line.startswith("diff --git"))
        found += [number] if inside and line and not line.startswith("@@ -") else []
    return found


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A diff as it arrives: a line too many or too few in a hunk, wrong numbers, other line ends, text around it."""
    lines = text.split("\n")
    plain = [line for line in lines if not line.startswith("diff --git ")]
    how = draw(st.sampled_from(["line", "number", "CRLF", "cut", "strip", "fence", "./", "time", "orig"]))
    if how == "line" and (places := in_hunks(lines)):
        at = draw(st.sampled_from(places))
        lines[at : at + draw(st.integers(0, 1))] = draw(st.lists(st.sampled_from([" a", "-a", "+a", ""]), max_size=2))
    elif how == "number" and (hunks := [number for number, line in enumerate(lines) if line.startswith("@@ -")]):
        at = draw(st.sampled_from(hunks))
        found = draw(st.sampled_from(list(re.finditer(r"\d+", lines[at].split(" @@")[0]))))
        wrong = max(int(found[0]) + draw(st.integers(-3, 3)), 0)
        lines[at] = f"{lines[at][: found.start()]}{wrong}{lines[at][found.end() :]}"
    elif how == "CRLF":
        lines = [f"{line}\r" for line in lines]
    elif how == "cut":
        lines = [*lines[: draw(st.integers(1, len(lines)))], ""]
    elif how == "strip":
        lines = [line.rstrip() for line in lines]
    elif how == "fence":
        lines = ["Here is the fix:", "", "```diff", *lines[:-1], "```", "It works."]
    elif how == "./":
        lines = [re.sub(r"^(--- |\+\+\+ )(\"?)[ab]/", r"\1\2./", line) for line in plain]
    elif how == "time":
        lines = [re.sub(r"^((?:---|\+\+\+) .*?)\t?$", r"\1 2024-01-01 10:00:00.000 +0000", line) for line in plain]
    elif how == "orig":
        lines = [
            re.sub(r"^(--- .*?)(\"?\t?)$", r"\1.orig\2", line) if "/dev/null" not in line else line for line in plain
        ]
    return "\n".join(lines)


OPTIONS = ["-M", "-C", "--find-copies-harder", "-U1", "-U0", "-B", "--no-prefix", "--no-renames", "--full-index"]


@dataclass(frozen=True)
class Example:
    """A diff between two trees, and the tree that it is applied to."""

    before: Files
    after: Files
    there: Files
    options: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Without prefixes, the first folder may be taken for one: that is another question."""
        return "--no-prefix" not in self.options or not any("/" in name for name in {*self.before, *self.after})


@st.composite
def examples(draw: st.DrawFn) -> Example:
    before = draw(trees)
    after = draw(changed(before))
    there = draw(changed(before)) if draw(st.integers(0, 3)) == 0 else before
    options = tuple(draw(st.lists(st.sampled_from(OPTIONS), unique=True, max_size=3)))
    return Example(before, after, there, options) if draw(st.integers(0, 5)) else Example(after, before, after, options)


@contextmanager
def folder(files: Files) -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        root = Path(name)
        write(root, files)
        yield root


def write(root: Path, files: Files) -> None:
    for path, (content, executable) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(0o755 if executable else 0o644)


def read(root: Path) -> Files:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), bool(path.stat().st_mode & 0o100)) for path in paths}


def git(root: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "LC_ALL": "C",
    }
    return subprocess.run(["git", *arguments], cwd=root, input=given, capture_output=True, check=False, env=environment)


def diff(before: Files, after: Files, options: Sequence[str]) -> str:
    with folder({}) as root:
        trees = []
        git(root, "init", "--quiet", "store")
        for name, files in (("before", before), ("after", after)):
            write(root / name, files)
            (root / name).mkdir(exist_ok=True)
            shared = ("--git-dir", str(root / "store/.git"), "--work-tree", ".")
            git(root / name, *shared, "-c", "core.autocrlf=false", "add", "--all", ".")
            trees.append(git(root / name, *shared, "write-tree").stdout.decode().strip())
        made = git(root / "store", "diff-tree", "-p", *options, *trees)
        assert made.returncode == 0, made.stderr
        return made.stdout.decode()


def apply_with_git(files: Files, text: str, *options: str) -> Files | str:
    with folder(files) as root:
        done = git(root, "apply", "--whitespace=nowarn", *options, given=text.encode())
        return read(root) if done.returncode == 0 else done.stderr.decode("utf-8", "replace")


def apply_with_ours(files: Files, text: str) -> tuple[Files | str, list[str]]:
    with folder(files) as root:
        tree = Tree(root, tuple(sorted(files)))
        try:
            made = apply_patches(tree, parse_diff(text))
        except PatchError as error:
            return str(error), []
    after = dict(files)
    for path, content in made.files.items():
        if content is None:
            after.pop(path, None)
        else:
            mode = made.modes.get(path, files[path][1] if path in files else False)
            after[path] = (content, mode)
    return after, made.notes


def explanation(example: Example, text: str, ours: Files, notes: Sequence[str], strip: Sequence[str]) -> str | None:
    """Why we apply what git refuses: after one of these repairs, git applies it too, with the same files."""
    whole = text.rstrip("\n") + "\n"
    missing = {path: file for path, file in example.before.items() if path not in example.there}
    unix = {path: (content.replace(b"\r", b""), mode) for path, (content, mode) in example.there.items()}
    ours_unix = {path: (content.replace(b"\r", b""), mode) for path, (content, mode) in ours.items()}
    repairs: list[tuple[str, Files, str, Files]] = [
        ("a file to delete is not there", example.there | missing, whole, ours),
        ("other line ends", unix, whole.replace("\r", ""), ours_unix),
    ]
    for why, there, repaired, wanted in repairs:
        if apply_with_git(there, repaired, *strip) == wanted:
            return why
    said = {
        "header counts": "a hunk has other lines than its header counts",
        "not there": "a file to delete is not there",
    }
    return next((why for words, why in said.items() if any(words in note for note in notes)), None)


def compare(example: Example, text: str) -> str:
    """How git's answer and ours differ, in words; fails if they may not."""
    strip = ["-p0"] if "--no-prefix" in example.options else []
    theirs = apply_with_git(example.there, text, *strip)
    ours, notes = apply_with_ours(example.there, text)
    if isinstance(theirs, str) and isinstance(ours, str):
        return "both refuse"
    if theirs == ours:
        return "the same files"
    if isinstance(ours, str):
        why = next((why for why, reason in REFUSED.items() if re.match(reason, ours)), None)
        assert why, f"git applies this, and we do not: {ours}\n{text}\n{example.there}"
        return f"only git: {why}"
    assert isinstance(theirs, str), f"other files than git's\n{text}\n{example.there}\n{theirs}\n{ours}"
    why = explanation(example, text, ours, notes, strip)
    assert why, f"we apply this, and git does not: {theirs}\n{text}\n{example.there}\n{ours}"
    return f"only we: {why}"


@given(examples())
def test_diffs_as_git_writes_them(example: Example) -> None:
    text = diff(example.before, example.after, example.options)
    if text and example.usable:
        event(compare(example, text))


@given(examples(), st.data())
def test_diffs_as_they_arrive(example: Example, data: st.DataObject) -> None:
    text = diff(example.before, example.after, example.options)
    if text and example.usable:
        event(compare(example, data.draw(damaged(text))))
