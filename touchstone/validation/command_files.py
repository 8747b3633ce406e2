"""The files of a tree that a test command runs: its scripts, what they include, and the files that they name.

The command is read, never run: `cd`, wrappers such as `timeout` and `env`, interpreters with options, test runners,
Makefiles (only the targets that are made) and npm scripts are followed. Paths that the tree lacks are found too.
Which test runner a command starts, and which programs of the machine it names, is here too.
"""

import fnmatch
import itertools
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from touchstone.validation.reach import TreeIndex, folder_of, joined
from touchstone.validation.test_reports import lines_of

_ENDS = frozenset({"{", "}", "!", "\n"})
_OPERATOR = re.compile(r"[();&|]+")
_KEYWORDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}"})
_WRAPPERS = (
    *("env", "time", "timeout", "nice", "exec", "sudo", "command", "nohup", "stdbuf", "xvfb-run", "setsid", "eval"),
    *("xargs", "busybox"),
    *("npx", "bunx", "poetry", "uv", "pipenv", "pdm", "hatch", "pixi", "rye", "coverage"),
)
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_INTERPRETERS = (
    *_SHELLS,
    *("python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "lua", "tsx", "ts-node", "Rscript"),
)
_TEST_RUNNERS = (
    *("pytest", "py.test", "unittest", "nose2", "mocha", "jest", "vitest", "ava", "tap", "tape", "jasmine"),
    *("rspec", "phpunit", "bats", "prove", "busted"),
)
_PACKAGE_MANAGERS = frozenset({"npm", "yarn", "pnpm"})
# Loaded before the script of an interpreter.
_LOADING_OPTIONS = frozenset({"-r", "--require", "--import", "--loader", "-I"})
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_RUN_BY = {
    **dict.fromkeys(("make", "gmake"), MAKEFILES),
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
}
# How the programs above are given another folder, or another file than the usual one.
_FOLDER_OPTIONS = ("-C", "--directory")
_FILE_OPTIONS = ("-f", "--file", "--makefile", "--justfile", "--rakefile", "--noxfile", "-c", "--conf", "--taskfile")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_OWN_FOLDER = re.compile(r"""\$\(\s*dirname [^)]*\)|`dirname [^`]*`""")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_VARIABLE_FOLDER = re.compile(r"^\$(?:\{[^}]*\}|\([^)]*\)|\w+)/")
# Words of a command that may precede the name of the program that it starts.
_BEFORE_PROGRAM = ("-m", "run", "exec", "--")
# Options of programs that start others, whose value is not the program.
_OPTIONS_WITH_VALUE = ("-u", "--unset", "-s", "--signal", "--with", "--python", "--source")
_BETWEEN_WORDS = re.compile(r"[\s;&|()<>{}$`\"'=:,!\\]+")
_MOST_SCRIPTS = 200
_MOST_NESTED = 20


@dataclass
class CommandFiles:
    """`scripts` are run or included, in the tree or not; `tests` are given to a test runner; `named` is what it has."""

    scripts: set[str] = field(default_factory=set)
    tests: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)


def command_files(command: str, directory: str, index: TreeIndex) -> CommandFiles:
    """The programs and files that a shell command in a directory of the tree runs and names.

    >>> from pathlib import Path
    >>> from touchstone.validation.protocol import Tree
    >>> tree = Tree(Path(), ("ci/run.sh", "golden.txt"), {"ci/run.sh": b"diff out golden.txt", "golden.txt": b""})
    >>> found = command_files("cd ci && timeout 10 bash -e run.sh", "", TreeIndex(tree))
    >>> found.scripts, sorted(found.named)
    ({'ci/run.sh'}, ['ci/run.sh', 'golden.txt'])
    """
    following = _Following(index, directory)
    following.follow(command, directory)
    return following.found


@dataclass
class _Following:
    index: TreeIndex
    start: str
    found: CommandFiles = field(default_factory=CommandFiles)
    made: set[tuple[str, str]] = field(default_factory=set)
    depth: int = 0

    def follow(self, text: str, directory: str, beside: str = "") -> None:
        """Follow the commands in a text. `beside` is the folder of the script that contains it."""
        self.depth += 1
        for inner in _SUBSTITUTION.findall(text) if self.depth <= _MOST_NESTED else ():
            self.follow("".join(inner), directory, beside)
        for words in _simple_commands(_OWN_FOLDER.sub(".", text)) if self.depth <= _MOST_NESTED else ():
            if words[0] in ("cd", "pushd") and len(words) > 1:
                directory = self._place(words[-1], directory, beside, folder=True) or directory
                continue
            for part in [part for word in words for part in re.split("[=:,<>]", word)]:
                place = self._place(part, directory, beside)
                several = [path for path in self.index.files if "*" in place and _matches(path, place)]
                self.found.named.update({place, *several} & self.index.places)
                for path in several if words[0] == "for" else ():
                    self._script(path, "", "")
            self._run(words, directory, beside)
        self.depth -= 1

    def _run(self, words: Sequence[str], directory: str, beside: str) -> None:
        words = _unwrapped(words)
        if not words:
            return
        program, arguments = words[0], words[1:]
        name = PurePosixPath(program).name
        base = name.rstrip("0123456789.")
        if program in (".", "source"):
            self._script(arguments[0] if arguments else "", directory, beside)
        elif "/" in program or self._place(program, directory, beside) in self.index.files:
            self._script(program, directory, beside)
        if base in _INTERPRETERS or program.startswith("$"):
            self._interpret(base, arguments, directory, beside)
        elif name in _TEST_RUNNERS:
            self._test(arguments, directory, beside)
        elif name in _PACKAGE_MANAGERS:
            self._package_script(arguments, directory, beside)
        elif name in _RUN_BY:
            self._make(name, arguments, directory, beside)

    def _interpret(self, program: str, arguments: Sequence[str], directory: str, beside: str) -> None:
        for before, word in zip(("", *arguments), arguments, strict=False):
            if before == "-m":
                rest = arguments[arguments.index(word) + 1 :]
                if word in (*_TEST_RUNNERS, *_WRAPPERS):
                    self._run([word, *rest], directory, beside)
                self._script(f"{word.replace('.', '/')}.py", directory, beside, only_known=True)
                self._script(f"{word.replace('.', '/')}/__main__.py", directory, beside, only_known=True)
                return
            if before.startswith("-") and before.endswith("c") and program in _SHELLS:
                self.follow(word, directory, beside)
                return
            if before in ("-c", "-e", "--eval") and program not in _SHELLS:
                return
            if word.startswith("-") or word in ("run", "test"):
                continue
            place = self._place(word, directory, beside)
            is_script = place in self.index.files or "." in word or "/" in word
            if is_script:
                self._script(word, directory, beside)
            if is_script and before not in _LOADING_OPTIONS:
                return

    def _test(self, arguments: Sequence[str], directory: str, beside: str) -> None:
        """Files that are given to a test runner are tests, unless their documentation is."""
        if any("doctest" in word for word in arguments):
            return
        arguments = [part for word in arguments for part in (("-p", word[2:]) if re.match("-p.", word) else (word,))]
        values = dict(itertools.pairwise(arguments))
        for before, word in zip(("", *arguments), arguments, strict=False):
            if before == "--cov":  # what is measured, not what measures
                continue
            place = self._place(word.partition("::")[0], directory, beside)
            if "*" in word and not before.startswith("-"):
                self.found.tests.update(path for path in self.index.files if _matches(path, place))
            dotted = joined(directory, f"{word.replace('.', '/')}.py") or ""
            self.found.tests.update({place, dotted} & self.index.files)
        if "discover" in arguments:
            pattern = values.get("-p") or values.get("--pattern") or "test*.py"
            folder = self._place(values.get("-s") or values.get("--start-directory") or ".", directory, beside)
            names = (path for path in self.index.files if f"{path}/".startswith(f"{folder}/") or folder in ("", "."))
            known = (path for path in names if fnmatch.fnmatchcase(path.rpartition("/")[2], pattern))
            self.found.tests.update(known if pattern.strip("*") != ".py" or folder not in ("", ".") else ())

    def _package_script(self, arguments: Sequence[str], directory: str, beside: str) -> None:
        words = list(arguments)
        for option in ("--prefix", "-C", "--cwd", "--dir"):
            if option in words[:-1]:
                at = words.index(option)
                directory = self._place(words[at + 1], directory, beside, folder=True) or directory
                del words[at : at + 2]
        plain = [word for word in words if not word.startswith("-")]
        if plain[:1] == ["exec"]:
            self._run(plain[1:], directory, beside)
            return
        name = next((word for word in plain if word not in ("run", "run-script")), "")
        name = {"t": "test", "tst": "test"}.get(name, name)
        manifest = joined(directory, "package.json") or ""
        if not name or (manifest, name) in self.made or manifest not in self.index.files:
            return
        self.made.add((manifest, name))
        try:
            scripts = json.loads(self.index.read(manifest)).get("scripts", {})
            texts = [scripts.get(f"{when}{name}", "") for when in ("pre", "", "post")]
        except (ValueError, AttributeError, RecursionError):
            return
        if not any(texts):  # a program of a package, as `yarn jest`
            self._run(plain[plain.index(name) :] if name in plain else [], directory, beside)
        for text in texts:
            self.follow(str(text), directory)

    def _make(self, program: str, arguments: Sequence[str], directory: str, beside: str) -> None:
        names: Sequence[str] = _RUN_BY[program]
        words = [part for word in arguments for part in _option_and_value(word)]
        for option, word in itertools.pairwise(words):
            if option in _FOLDER_OPTIONS:
                directory = self._place(word, directory, beside, folder=True) or directory
            if option in _FILE_OPTIONS:
                names = (word,)
        with_value = (*_FOLDER_OPTIONS, *_FILE_OPTIONS, "-j")
        values = {word for option, word in itertools.pairwise(words) if option in with_value}
        targets = [word for word in words if not word.startswith("-") and "=" not in word and word not in values]
        places = [place for name in names if (place := joined(directory, name))]
        self.found.scripts.update(places)  # make prefers some names to others, so that a new file could come first
        for place in places:
            made = (place, " ".join(targets))
            if place in self.index.files and made not in self.made:
                self.made.add(made)
                if _RUN_BY[program] == MAKEFILES:
                    self._follow_makefile(place, targets, directory)
                return

    def _follow_makefile(self, makefile: str, targets: Sequence[str], directory: str) -> None:
        rules = _Rules()
        waiting, read = [makefile], set[str]()
        while waiting and len(read) < _MOST_SCRIPTS:
            place = waiting.pop()
            if place in read:
                continue
            read.add(place)
            self.found.scripts.add(place)
            for word in rules.read(self.index.read(place)) if place in self.index.files else ():
                included = joined(directory, word) or ""
                waiting += fnmatch.filter(self.index.files, included) or [included]
        # A new file of a target's name would be up to date.
        own = {joined(directory, name) or "" for name in rules.rules if re.fullmatch(r"[\w-]+", name)}
        self.found.scripts |= own - self.index.places
        for line in rules.recipe(targets):
            self.follow(line, directory)

    def _script(self, word: str, directory: str, beside: str, *, only_known: bool = False) -> None:
        place = self._place(word, directory, beside)
        if not place or (only_known and place not in self.index.files) or len(self.found.scripts) > _MOST_SCRIPTS:
            return
        known = place in self.found.scripts
        self.found.scripts.add(place)
        if known or place not in self.index.files or place in self.index.folders:
            return
        text = self.index.read(place)
        if (
            PurePosixPath(place).suffix in (".sh", ".bash")
            or re.match(r"#!.*\b(?:ba|da|z|k)?sh\b", text)
            or ("." not in PurePosixPath(place).name and not text.startswith("#!"))
        ):
            self.follow(text, directory, folder_of(place))

    def _place(self, word: str, directory: str, beside: str, *, folder: bool = False) -> str:
        """The path of a word's file: in the first folder that has it, else where the command runs; empty if outside."""
        word = _VARIABLE_FOLDER.sub("", word)
        if not word or word.startswith(("-", "/")):
            return ""
        places = [joined(base, word) for base in dict.fromkeys((directory, beside, self.start, ""))]
        known = self.index.folders if folder else self.index.places
        return next((place for place in places if place in known), places[0] or "")


@dataclass
class _Rules:
    """The rules and variables of a Makefile and what it includes."""

    variables: dict[str, str] = field(default_factory=lambda: {"MAKE": "make", "SHELL": "sh", "CURDIR": "."})
    rules: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    first: str = ""

    def read(self, text: str) -> list[str]:
        """Add a file's rules; returns the files that it includes."""
        included: list[str] = []
        current: list[tuple[list[str], list[str]]] = []
        for line in text.replace("\\\n", " ").split("\n"):
            if line.startswith("\t"):
                for _, recipe in current:
                    recipe.append(line.strip().lstrip("@-+"))
                continue
            line = self._expanded(line.partition("#")[0])
            if found := re.match(r"\s*(?:-|s)?include\s+(.*)", line):
                included += found[1].split()
            elif found := re.match(r"\s*(?:export\s+)?([\w.]+)\s*(?::{0,3}|\?|\+)=\s*(.*)", line):
                self.variables[found[1]] = found[2].strip()
            elif found := re.match(r"([^:=\s][^:=]*)::?(?!=)([^=;]*)(?:;(.*))?$", line):
                names = found[1].split()
                current = [self.rules.setdefault(name, ([], [])) for name in names]
                self.first = self.first or next((name for name in names if not name.startswith(".")), "")
                for needed, recipe in current:
                    needed += found[2].replace("|", " ").split()
                    recipe += [found[3]] if found[3] else []
        return included

    def recipe(self, targets: Sequence[str]) -> Iterator[str]:
        """The commands that make these targets, or the first one."""
        waiting, done = list(targets) or [self.first], set[str]()
        while waiting:
            name = waiting.pop()
            if name in done:
                continue
            done.add(name)
            needed, commands = self.rules.get(name) or next(
                (
                    rule
                    for pattern, rule in self.rules.items()
                    if "%" in pattern and fnmatch.fnmatch(name, pattern.replace("%", "*"))
                ),
                ([], []),
            )
            waiting += needed
            yield from map(self._expanded, commands)

    def _expanded(self, line: str) -> str:
        for _ in range(3):
            line = re.sub(r"\$[({](\w+)[)}]", lambda found: self.variables.get(found[1], found[0]), line)
        return line


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern part by part."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _simple_commands(text: str) -> Iterator[list[str]]:
    """The commands of a shell text, each as its words."""
    for line in text.replace("\\\n", " ").split("\n"):
        current: list[str] = []
        for word in (*_words_of(line), "\n"):
            if word in _ENDS or _OPERATOR.fullmatch(word):
                while current and current[0] in _KEYWORDS:
                    current.pop(0)
                if current:
                    yield current
                current = []
            else:
                current.append(word)


def _option_and_value(word: str) -> tuple[str, ...]:
    """An option and its value where a word has both, as `-fci.mk` and `--file=ci.mk`; else the word."""
    option, equals, value = word.partition("=")
    if equals and option in (*_FOLDER_OPTIONS, *_FILE_OPTIONS):
        return option, value
    return (word[:2], word[2:]) if re.match("-[Cfc].", word) else (word,)


def _unwrapped(words: Sequence[str]) -> list[str]:
    """A command without what stands before its program."""
    rest, wrapped = list(words), False
    while rest:
        word = rest[0]
        if _ASSIGNMENT.fullmatch(word) or PurePosixPath(word).name in _WRAPPERS:
            wrapped = wrapped or PurePosixPath(word).name in _WRAPPERS
            rest.pop(0)
        elif wrapped and word == "-m":  # `coverage run -m`
            return ["python", *rest]
        elif wrapped and (word.startswith("-") or word in ("run", "exec") or _NUMBER.fullmatch(word)):
            rest.pop(0)
            if word in _OPTIONS_WITH_VALUE:
                rest = rest[1:]
        else:
            break
    return rest


# Programs of a command line


def runner_format(arguments: Sequence[str]) -> str | None:
    """The format of a test runner that runs the fix in its own process, so that the fix can end it with exit code 0.

    >>> runner_format(["/bin/sh", "-c", "cd shop && python -m pytest -q"]), runner_format(["cargo", "test"])
    ('pytest', 'cargo')
    >>> runner_format(["grep", "pytest", "notes.txt"])
    """
    programs = set(_programs(arguments))
    if any(name in ("pytest", "py.test") for name, _ in programs):
        return "pytest"
    return "cargo" if programs & {("cargo", "test"), ("cargo", "t")} else None


def left_early(arguments: Sequence[str], output: str) -> bool:
    """Whether a runner without a known report lacks the line with which it ends a successful run.

    >>> [left_early(["python", "-m", "unittest"], text) for text in ("Ran 1 test\\n\\nOK (skipped=1)", "")]
    [False, True]
    """
    runs = any(name == "unittest" for name, _ in _programs(arguments))
    return runs and not any(line == "OK" or line.startswith("OK (") for line in lines_of(output))


def words(command: str) -> set[str]:
    """The words of a shell command, those in quotes too, that may name programs or files of the machine.

    >>> sorted(words("cd /opt/shop\\ntimeout 9 sh -c 'go test' && /opt/check.sh --rules=/opt/rules"))
    ['/opt/check.sh', '/opt/rules', '/opt/shop', '9', 'cd', 'go', 'sh', 'test', 'timeout']
    """
    return {word for word in _BETWEEN_WORDS.split(command) if word and not word.startswith("-")}


def _programs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The programs that a command starts, as far as it shows, each with its first word that is no option."""
    rest = _unwrapped(words)
    name = PurePosixPath(rest[0]).name if rest else ""
    yield name, next((word for word in rest[1:] if not word.startswith(("-", "+"))), "")
    for place, option in enumerate(rest[1:-1], 2):
        if name in _SHELLS and option.startswith("-") and option.endswith("c"):
            for command in _simple_commands(rest[place]):
                yield from _programs(command)
            return
        if option in _BEFORE_PROGRAM:
            yield from _programs(rest[place:])
            return


def _words_of(command: str) -> list[str]:
    """The words and operators of a shell command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote
        return command.split()
