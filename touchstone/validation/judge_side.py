"""The judge's side of a problem: what its tests, test command and runner configuration reach, and its source does not.

Computed once per problem from the unmodified files, and put back after a fix is applied. A right fix must never be
broken, so a file is the judge's only on evidence: it is a test or among tests, the test command runs it, or only
tests reach it and its name or content shows that it serves them. What both sides reach, or what remains unclear, counts
as source, and a fix that changes it is flagged. Running the tests belongs in `validators`.
"""

import glob
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath

from touchstone.validation.command_files import CommandFiles, command_files
from touchstone.validation.fixes.judge_changes import MANIFESTS
from touchstone.validation.fixes.rust_tests import test_items
from touchstone.validation.fixes.unified_diff import readable_patches
from touchstone.validation.protocol import Problem, Tree
from touchstone.validation.reach import (
    CODE,
    JAVASCRIPT,
    PYTEST_SETTINGS,
    PYTHON,
    SOURCE_FOLDERS,
    TreeIndex,
    folder_of,
    is_among_tests,
    is_runner_file,
    is_test_name,
    joined,
    looks_like_test,
)

# Only with tests inside: `django/test` has none.
_NAMED_FOR_TESTS = ("test", "testing", "spec", "specs", "e2e")
# Files that help tests wherever they are, if only tests reach them.
_HELPER_NAME = re.compile(
    r"helpers?|checks|asserts|assertions|fixtures|expected|testing|testlib|(?:tests?|spec)[_-]?(?:utils?|helpers?|support"
    r"|tools?|data|base)|(?:utils?|helpers?|support)[_-](?:for[_-])?tests?"
)
_GOLDEN = re.compile(r"golden|expected|snapshot|test[_-]?data", re.IGNORECASE)
_PRODUCT_DATA = frozenset({"templates", "static", "locale", "migrations", "assets", "public", "docs", "doc"})
_DOCUMENT = re.compile(r"[A-Z][A-Z_-]{2,}(?:\.\w+)?|requirements.*\.txt")
_FOLLOWED = (*PYTHON, *JAVASCRIPT)
_MOST_FOLLOWED = 500
_MOST_IN_FOLDER = 5_000


@dataclass(frozen=True)
class Declared:
    """What a row declares about its problem's files: patterns `judge_files`, `source_files`, paths in `test_patch`."""

    judge: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    test_patch: tuple[str, ...] = ()


def with_judge_side(
    problem: Problem, tree: Tree, declared: Declared | None = None, command: str = "", index: TreeIndex | None = None
) -> Problem:
    """The problem with `judge_files`, `shared_files` and the patterns for new files.

    `command` is what the configuration runs if the problem has no command of its own.

    >>> from pathlib import Path
    >>> texts = {"cart.py": b"", "checks.py": b"", "test_cart.py": b"import cart, checks, rates", "rates.py": b""}
    >>> tree = Tree(Path(), tuple(sorted(texts)), texts)
    >>> found = with_judge_side(Problem("a", "cart.py", Path()), tree)
    >>> found.judge_files, found.shared_files
    (('checks.py', 'test_cart.py'), ('rates.py',))
    """
    split = _Split(problem, index or TreeIndex(tree), declared or Declared(), problem.test_command or command)
    judge, shared = split.sides()
    new = [glob.escape(path) for path in sorted(split.commands.scripts - split.index.files)]
    new += [f"{glob.escape(folder)}/*" for folder in sorted(split.folders_of_tests)]
    new += [place for name in split.python_files for place in (name, f"*/{name}")]
    return replace(
        problem,
        judge_files=tuple(sorted(judge)),
        shared_files=tuple(sorted(shared)),
        judge_patterns=(*split.patterns(split.declared.judge), *new),
        source_patterns=(*split.patterns(split.declared.source), *(glob.escape(path) for path in split.reference)),
    )


@dataclass
class _Split:
    problem: Problem
    index: TreeIndex
    declared: Declared
    command: str
    judge: set[str] = field(default_factory=set)
    flagged: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)
    considered: set[str] = field(default_factory=set)
    # Modules that help tests by their name or content; those beside one that it imports; what anything else imports.
    helpers: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)
    direct: set[str] = field(default_factory=set)

    def patterns(self, declared: Iterable[str]) -> tuple[str, ...]:
        """Patterns relative to the root, also for those that are relative to the working directory."""
        below = self.problem.working_directory
        return tuple(p for one in declared for p in dict.fromkeys((one, f"{below}/{one}" if below else one)))

    @cached_property
    def reference(self) -> tuple[str, ...]:
        """Files that the reference changes outside of tests: source."""
        patches = readable_patches(self.problem.reference_patch)
        paths = {path for patch in patches for path in (patch.old, patch.new) if path is not None}
        # With a patch of tests beside it, the reference has none.
        return tuple(sorted(path for path in paths if self.declared.test_patch or not looks_like_test(path)))

    @cached_property
    def own(self) -> frozenset[str]:
        """The files that are source for certain."""
        named = {self.problem.path} if self.problem.filename else set()
        return frozenset(self._matching(self.declared.source) | named | set(self.reference))

    @cached_property
    def commands(self) -> CommandFiles:
        return command_files(self.command, self.problem.working_directory, self.index)

    @cached_property
    def explicit(self) -> frozenset[str]:
        """The test files that the problem names."""
        problem = self.problem
        names = {name.partition("::")[0] for name in (*problem.tests, *problem.judged_tests, *problem.expected_tests)}
        places = {joined(folder, name) for name in names for folder in (problem.working_directory, "")}
        patched = {path for path in self.declared.test_patch if not path.endswith(".rs") or looks_like_test(path)}
        given = {path for path in self.commands.tests if looks_like_test(path) or not self._is_packaged(path)}
        return frozenset((self.index.files & (places | patched | given)) - self.own)

    def _is_packaged(self, path: str) -> bool:
        top = path.removeprefix(f"{self.problem.working_directory}/").partition("/")[0]
        return joined(self.problem.working_directory, f"{top}/__init__.py") in self.index.files or top in SOURCE_FOLDERS

    @cached_property
    def tests(self) -> frozenset[str]:
        """Every file that is named like a test, also as pytest's configuration says."""
        patterns = self.python_files
        return frozenset(
            path
            for path in self.index.files - self.own
            if is_test_name(name := path.rpartition("/")[2]) or any(fnmatchcase(name, pattern) for pattern in patterns)
        )

    @cached_property
    def python_files(self) -> list[str]:
        """How test files are named by the configuration of pytest."""
        settings = (self.index.read(path) for path in self.index.files if path.rpartition("/")[2] in PYTEST_SETTINGS)
        found = [re.search(r"python_files\s*=\s*([^\n\]]*(?:\n[ \t]+[^\n]*)*)", text) for text in settings]
        return [name for one in found if one for name in re.findall(r"[\w*?.-]*\w[\w*?.-]*\.py", one[1])]

    def _matching(self, declared: Iterable[str]) -> set[str]:
        patterns = self.patterns(declared)
        return {path for path in self.index.files if any(fnmatchcase(path, pattern) for pattern in patterns)}

    def sides(self) -> tuple[set[str], set[str]]:
        """The judge's files, and those that both sides reach or that remain unclear."""
        files, wanted = self.index.files, self._matching(self.declared.judge)
        scripts = (self.commands.scripts & files) - self.own
        modules = {path for path in scripts if path.endswith(_FOLLOWED)}
        self.flagged = {path for path in modules if self._is_in_source(path, only_packages=True)}
        certain = (self.explicit | self.tests | {path for path in files if is_runner_file(path)}) - self.own
        certain |= (scripts - modules) | self._rust_modules()
        among = {path for path in files if is_among_tests(path) or self._is_beside_tests(path)}
        self.judge = {*certain, *(modules - self.flagged), *among} - self.own
        read = certain - self.tests - (scripts - modules)  # what scripts of other languages reach is known already
        self._follow([*sorted(self.explicit or self.tests), *sorted(read), *sorted(modules)])
        self._return_what_source_reaches(certain)
        both = wanted & (self._matching(self.declared.source) | {self.problem.path})
        return (self.judge | wanted) - both, (self.flagged - wanted - self.own) | both

    def _follow(self, starts: Sequence[str]) -> None:
        for place in sorted(self.commands.named):
            if PurePosixPath(place).suffix not in CODE:
                self._consider(place)
        waiting = list(dict.fromkeys(reversed(starts)))
        seen: set[str] = set()
        while waiting and len(seen) < _MOST_FOLLOWED:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            reached = self.index.reach(path)
            beside = dict.fromkeys((folder_of(path), self.problem.working_directory, ""))
            for place in sorted(reached.modules | self.index.named(reached.names, beside)):
                waiting += [one for one in self._consider(place) if one not in seen]
            is_helper = path in self.helpers and self._has_folder_of_its_own(path)
            own = {place for place in reached.modules if is_helper and folder_of(place) == folder_of(path)}
            self.direct |= reached.modules - own
            self.inner |= {*own, f"{folder_of(path)}/__init__.py"} if is_helper else set()
        inner = {path for path in self.unclear & self.inner if path not in self.direct or path.endswith("/__init__.py")}
        if inner:
            self.unclear -= inner
            self.judge |= inner
            self._follow(sorted(inner))

    def _has_folder_of_its_own(self, path: str) -> bool:
        """Whether a file is neither beside certain source nor at the top."""
        folder = folder_of(path)
        return folder not in ("", self.problem.working_directory, *map(folder_of, self.own))

    def _consider(self, place: str) -> list[str]:
        """Take a file or folder that a judge's file reaches to its side; returns the files there to follow."""
        if place in self.considered:
            return []
        self.considered.add(place)
        if place in self.index.folders:
            inside = [path for path in self.index.files if path.startswith(f"{place}/")]
            plain = len(inside) <= _MOST_IN_FOLDER and all(PurePosixPath(path).suffix not in CODE for path in inside)
            for path in inside if plain else ():
                self._consider(path)
            return []
        if place in self.own:
            return []
        is_code = PurePosixPath(place).suffix in CODE
        if place not in self.judge:
            side = self._side_of_code(place) if is_code else self._side_of_data(place)
            {"judge": self.judge, "flagged": self.flagged, "unclear": self.unclear}.get(side, set()).add(place)
            self.helpers |= {place} & self.judge
        return [place] if is_code and place in self.judge else []

    def _side_of_code(self, path: str) -> str:
        name, folder = PurePosixPath(path).stem, folder_of(path)
        if path.endswith("/__init__.py") or name == "index":
            name = folder.rpartition("/")[2]
        in_package = f"{folder}/__init__.py" in self.index.files and not _HELPER_NAME.fullmatch(path.partition("/")[0])
        uses = self.index.uses_test_library(path)
        named = not in_package and _HELPER_NAME.fullmatch(name) is not None
        is_tested = name in self._tested
        if self._is_in_source(path):
            if uses and folder in self._test_folders and not is_tested:
                return "judge"
            return "flagged" if uses or named else "source"
        return "judge" if (uses or named or self.index.asserts(path)) and not is_tested else "unclear"

    def _side_of_data(self, path: str) -> str:
        parts = path.split("/")
        if parts[-1] in MANIFESTS or _DOCUMENT.fullmatch(parts[-1]):
            return "source"
        if any(_GOLDEN.search(part) for part in parts):
            return "judge"
        return "flagged" if self._is_in_source(path) or _PRODUCT_DATA.intersection(parts[:-1]) else "judge"

    @cached_property
    def _tested(self) -> frozenset[str]:
        """The names that tests are named after: `test_tax.py` and `tax.test.js` show that `tax` is under test."""
        stems = (path.rpartition("/")[2].partition(".")[0] for path in self.tests)
        return frozenset(stem.removeprefix("test_").removesuffix("_test").removesuffix("_spec") for stem in stems)

    @cached_property
    def _test_folders(self) -> frozenset[str]:
        """Folders with tests and without certain source."""
        return frozenset({folder_of(path) for path in self.explicit | self.tests} - set(map(folder_of, self.own)))

    @cached_property
    def _source_folders(self) -> frozenset[str]:
        """The top folders of the source below the working directory; none where source and tests are side by side."""
        found, below = set(), self.problem.working_directory
        tests = {folder_of(path) for path in self.tests | self.explicit}
        for folder in map(folder_of, self.own):
            packaged = f"{folder}/__init__.py" in self.index.files
            if not folder or (not packaged and (folder == below or folder in tests)):
                continue
            base = f"{below}/" if below and folder.startswith(f"{below}/") else ""
            found.add(folder if folder == below else base + folder[len(base) :].partition("/")[0])
        return frozenset(found)

    def _is_in_source(self, path: str, *, only_packages: bool = False) -> bool:
        """Whether a file is in the source's package; in any package if it is not known where the source is."""
        if self.own:
            return any(path.startswith(f"{folder}/") for folder in self._source_folders)
        top = path.partition("/")[0]
        return f"{top}/__init__.py" in self.index.files or (top in SOURCE_FOLDERS and not only_packages)

    def _is_beside_tests(self, path: str) -> bool:
        return any(path.startswith(f"{folder}/") for folder in self.folders_of_tests)

    @cached_property
    def folders_of_tests(self) -> frozenset[str]:
        """Folders with tests that are named so, and folders of Python tests apart from the source.

        The latter only if it is known where the source is, and if no module there has a test of its own.
        """
        so_named = {folder for folder in self._test_folders if folder.rpartition("/")[2] in _NAMED_FOR_TESTS}
        if not self.own:
            return frozenset(so_named)
        tests = {path for path in self.explicit or self.tests if path.endswith(PYTHON)}
        sources = {str(parent) for path in self.own for parent in PurePosixPath(path).parents}
        tested = {folder_of(path) for path in self.index.files - tests if PurePosixPath(path).stem in self._tested}
        folders = {folder_of(path) for path in tests} - sources - tested - {""}
        return frozenset(so_named | {folder for folder in folders if not self._is_in_source(f"{folder}/")})

    def _return_what_source_reaches(self, certain: Set[str]) -> None:
        """Count as source what a file outside the judge's side imports or names, until there is no such file."""
        doubtful = self.judge - certain
        modules = {path for path in doubtful if path.endswith(_FOLLOWED)}
        data = {path for path in doubtful - modules if not is_among_tests(path) and not self._is_beside_tests(path)}
        while modules or data or self.unclear:
            outside = self.index.files - self.judge
            imported = {one for path in outside if modules or self.unclear for one in self.index.imports(path)}
            named = {one for path in outside if data for one in self.index.names_in(path)}
            # A source that names a folder may read any file in it.
            named -= {part for path in self.own for part in path.split("/")[:-1]}
            returned = (modules & imported) | {path for path in data if not named.isdisjoint(path.split("/"))}
            if not returned:
                self.flagged |= self.unclear - imported  # what source imports too is source like any other
                return
            self.flagged |= returned
            self.judge -= returned
            modules -= returned
            data -= returned

    def _rust_modules(self) -> set[str]:
        """The files of modules that are compiled for tests only."""
        found: set[str] = set()
        if not (self.problem.path.endswith(".rs") or "cargo" in self.command):
            return found
        for path in [path for path in self.index.files if path.endswith(".rs")]:
            folder, stem = folder_of(path), PurePosixPath(path).stem
            inner = folder if stem in ("mod", "lib", "main") else joined(folder, stem) or ""
            for item in (one for one in test_items(self.index.read(path)) if one.file_module):
                given = joined(folder, item.path) if item.path else None
                below = joined(inner, item.file_module) or ""
                places = {given} if given else {f"{below}.rs", f"{below}/mod.rs"}
                places |= {one for one in self.index.files if not given and one.startswith(f"{below}/")}
                found |= places & self.index.files
        return (found | set(self._rust_crates_for_tests())) - self.own

    def _rust_crates_for_tests(self) -> Iterator[str]:
        """The files of crates in the tree that only tests depend on."""
        used: dict[bool, set[str]] = {True: set(), False: set()}
        for manifest in (path for path in self.index.files if path.rpartition("/")[2] == "Cargo.toml"):
            with suppress(ValueError, AttributeError, RecursionError):
                parsed = tomllib.loads(self.index.read(manifest))
                for kind in ("dependencies", "build-dependencies", "dev-dependencies"):
                    paths = [str(one["path"]) for one in parsed.get(kind, {}).values() if "path" in one]
                    used[kind == "dev-dependencies"] |= {joined(folder_of(manifest), path) or "" for path in paths}
        for folder in used[True] - used[False] - {"", "."}:
            if not any(path.startswith(f"{folder}/") for path in self.own):
                yield from (path for path in self.index.files if path.startswith(f"{folder}/"))
