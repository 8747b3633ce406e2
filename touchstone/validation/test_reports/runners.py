"""The programs of a command line: test runners whose exit code alone is not enough, and programs of the machine."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from touchstone.validation.test_reports.results import lines_of

# Words that may precede a program's name in a shell command.
_BEFORE_PROGRAM = ("&&", "||", ";", "|", "(", "-m", "run", "exec", "time", "env", "--", "-c")
_BETWEEN_WORDS = re.compile(r"[\s;&|()<>{}$`\"'=:,!\\]+")


def runner_format(arguments: Sequence[str]) -> str | None:
    """The format of a test runner that runs the fix in its own process, so that the fix can end it with exit code 0.

    >>> runner_format(["/bin/sh", "-c", "cd shop && python -m pytest -q"]), runner_format(["cargo", "test"])
    ('pytest', 'cargo')
    >>> runner_format(["grep", "pytest", "notes.txt"])
    """
    programs = list(_programs(arguments))
    if any(name in ("pytest", "py.test") for name, _ in programs):
        return "pytest"
    return "cargo" if ("cargo", "test") in programs else None


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


def _programs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The programs that a command line starts, as far as it shows, each with the word after it."""
    for words in (arguments, *(words_of(argument) for argument in arguments if " " in argument)):
        for before, word, after in zip(("&&", *words), words, (*words[1:], ""), strict=False):
            if before in _BEFORE_PROGRAM or "=" in before:
                yield PurePosixPath(word).name, after


def words_of(command: str) -> list[str]:
    """The words and operators of a shell command."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote
        return command.split()
