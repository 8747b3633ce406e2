"""The step that decides: evaluates or compares, writes the report, and ends with Touchstone's exit code.

Inputs are TOUCHSTONE_CI_* variables, which `action.yml` describes; in addition TOUCHSTONE_CI_REPORT and
TOUCHSTONE_CI_JUNIT say where to write. Needs only the standard library and the command `touchstone`.
"""

import os
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci import DEFAULT_NAME, UsageError, announce, report_name, setting, shortened, use_utf8

PASSED, FAILED, WRONG = 0, 1, 2
TITLES = {PASSED: "passed", FAILED: "failed", WRONG: "error"}
SCORES = ("pass_rate", "auto", "best", "mean", "composite", "code", "config")
FAIL_ON = {"worse": "--fail-on-verdict=worse", "regression": "--fail-on-regression"}
# GitHub takes 1 MiB for a step's summary; the rest of the report needs room beside the output of a run.
MAX_SUMMARY = 1024 * 1024
MAX_SHOWN_OUTPUT = 30_000


@dataclass(frozen=True)
class Inputs:
    """The user's inputs to the action."""

    mode: str
    config: str
    paths: list[str]
    baseline: str
    output_dir: str
    gate: list[str]
    score: str
    folder: Path

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Inputs":
        """The inputs, checked as far as Touchstone does not check them itself."""
        mode = _one_of(environment, "MODE", "run", ("run", "compare"))
        _one_of(environment, "COMMENT", "true", ("true", "false"))
        paths = [line.strip() for line in setting(environment, "PATHS").split("\n") if line.strip()]
        baseline = setting(environment, "BASELINE")
        if mode == "compare" and (not baseline or len(paths) != 1):
            raise UsageError("mode compare needs a baseline and one path to compare with it")
        folder = Path(setting(environment, "WORKING_DIRECTORY", "."))
        if not folder.is_dir():
            raise UsageError(f"working-directory: {str(folder)!r} is not a folder")
        return cls(
            mode=mode,
            config=setting(environment, "CONFIG"),
            paths=paths,
            baseline=baseline,
            output_dir=setting(environment, "OUTPUT_DIR", "touchstone-results"),
            gate=_gate(setting(environment, "FAIL_ON", "worse").replace(",", " ").split()),
            # The verdict is on pass@1, the mean pass rate: by default, the cases below it are compared by the same.
            score=_one_of(environment, "SCORE", "pass_rate", SCORES),
            folder=folder,
        )


def _one_of(environment: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = setting(environment, name, default)
    if value not in choices:
        raise UsageError(f"{name.lower()}: {value!r} is not one of {', '.join(choices)}")
    return value


def _gate(words: list[str]) -> list[str]:
    """The options that make a comparison fail."""
    if words == ["none"]:
        return []
    if unknown := [word for word in words if word not in FAIL_ON]:
        raise UsageError(f"fail-on: {unknown[0]!r} is not one of {', '.join(FAIL_ON)}, none")
    return [FAIL_ON[word] for word in words]


@dataclass(frozen=True)
class Result:
    """How it ended: the exit code, the verdict in one line, and the report's body in Markdown."""

    code: int
    verdict: str
    body: str


@dataclass(frozen=True)
class Finished:
    """A finished command: its exit code and what it printed."""

    code: int
    out: str
    messages: list[str]


class Touchstone:
    """The installed command, run in the user's folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        programs = setting(environment, "BIN")
        self._program = str(Path(programs, "touchstone")) if programs else "touchstone"
        self._folder = folder
        # The token is not for it.
        kept = {name: value for name, value in environment.items() if not name.startswith("TOUCHSTONE_CI_")}
        self._environment = {"COLUMNS": "160", **kept, "PYTHONUTF8": "1"}

    def __call__(self, *arguments: str, quiet: bool = False) -> Finished:
        """Run a command. What it prints is shown at once, unless `quiet`, and kept."""
        line = [self._program, *arguments]
        try:
            process = subprocess.Popen(
                line,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            raise UsageError(f"touchstone cannot be started ({error.strerror}); install it first") from None
        out, err = _Lines(process.stdout, None if quiet else sys.stdout), _Lines(process.stderr, sys.stderr)
        code = process.wait()
        messages = [each for each in err() if each.startswith(("error: ", "warning: ", "note: "))]
        if code < 0:
            messages.append(f"error: touchstone was ended by signal {-code}; 9 often means too little memory")
        return Finished(code if code in TITLES else WRONG, "\n".join(out()), messages)


class _Lines(threading.Thread):
    """Copies a stream line by line to another one, if given, and keeps the lines."""

    def __init__(self, source: IO[str] | None, shown: IO[str] | None) -> None:
        super().__init__(daemon=True)
        self._source, self._shown, self._lines = source or (), shown, list[str]()
        self.start()

    def run(self) -> None:
        for line in self._source:
            self._lines.append(line.rstrip("\n"))
            if self._shown is not None:
                print(line, end="", file=self._shown, flush=True)

    def __call__(self) -> list[str]:
        # The command has ended; a process that it left behind may hold the stream open for ever.
        self.join(timeout=60)
        return self._lines


def evaluate(inputs: Inputs, touchstone: Touchstone) -> Result:
    """Evaluate, then compare with the baseline if there is one."""
    gate_report = inputs.folder / inputs.output_dir / "comparison.md"
    before = _written_at(gate_report)
    config = [f"--config={inputs.config}"] if inputs.config else []
    # After `--` nothing is taken for an option.
    run = touchstone("run", *config, f"--output-dir={inputs.output_dir}", "--", *inputs.paths)
    output = _fenced("\n".join([run.out, *run.messages]))
    if run.code == PASSED and inputs.baseline:
        compared = compare(inputs, inputs.output_dir, touchstone)
        details = f"<details><summary>Evaluation</summary>\n\n{output}\n</details>\n"
        return Result(compared.code, compared.verdict, f"{compared.body}\n{details}")
    said = re.findall(r"\d[\d,]* of \d[\d,]* checks passed", run.out)
    if _written_at(gate_report) != before:
        comparison = gate_report.read_text(encoding="utf-8")
        said, output = [*said, comparison.partition("\n")[0]], f"{comparison}\n{output}"
    return Result(run.code, _verdict(run, ["; ".join(said)] if said else []), output)


def _written_at(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.is_file() else None


def compare(inputs: Inputs, current: str, touchstone: Touchstone) -> Result:
    """Compare with the baseline; the exit code is the gate's."""
    options = [f"--config={inputs.config}"] if inputs.config else []
    options += [f"--score={inputs.score}"] if inputs.score != "config" else []
    sides = ["--", inputs.baseline, current]
    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch, "comparison.md")
        done = touchstone("compare", *options, *inputs.gate, f"--save-to={saved}", *sides)
        if not saved.is_file():
            return Result(WRONG, _verdict(done), _fenced("\n".join(done.messages)))
        report = saved.read_text(encoding="utf-8")
    if junit := setting(os.environ, "JUNIT"):
        touchstone("compare", *options, "--format=junit", f"--save-to={Path(junit).absolute()}", *sides, quiet=True)
    return Result(done.code, report.partition("\n")[0], report)


def _verdict(done: Finished, lines: Iterable[str] = ()) -> str:
    errors = [each for each in done.messages if each.startswith("error: ")]
    return next(iter([*errors, *lines]), f"touchstone ended with exit code {done.code}")


def _fenced(text: str) -> str:
    """A code block that the text cannot end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    text = shortened(text.strip("\n"), MAX_SHOWN_OUTPUT, "… shortened; the log of the job has the rest")
    return f"{fence}text\n{text}\n{fence}\n"


def publish(result: Result, environment: Mapping[str, str]) -> None:
    """Write the report, the step's summary and the step's outputs."""
    name = report_name(environment)
    title = "Touchstone" if name == DEFAULT_NAME else f"Touchstone ({name})"
    text = f"### {title}: {TITLES[result.code]}\n\n{result.body}"
    if chosen := setting(environment, "REPORT"):
        report = Path(chosen).absolute()
    else:
        report = Path(tempfile.mkdtemp(prefix="touchstone-", dir=environment.get("RUNNER_TEMP"))) / "report.md"
    report.write_text(text, encoding="utf-8")
    outputs = {"verdict": result.verdict, "exit-code": str(result.code), "report": str(report), "artifact": name}
    # Values may hold anything: only a delimiter that nobody can guess ends them.
    end = f"end-{secrets.token_hex(16)}"
    _append(environment, "GITHUB_OUTPUT", "".join(f"{key}<<{end}\n{value}\n{end}\n" for key, value in outputs.items()))
    _append(environment, "GITHUB_STEP_SUMMARY", shortened(text, MAX_SUMMARY, "… shortened; see the artifact"))


def _append(environment: Mapping[str, str], name: str, text: str) -> None:
    if path := environment.get(name):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def main() -> int:
    """The whole step. Whatever is not a verdict ends with 2: exit code 1 is for the gate."""
    try:
        inputs = Inputs.read(os.environ)
        touchstone = Touchstone(inputs.folder, os.environ)
        compares = inputs.mode == "compare"
        result = compare(inputs, inputs.paths[0], touchstone) if compares else evaluate(inputs, touchstone)
    except (UsageError, OSError, ValueError) as error:
        result = Result(WRONG, f"error: {error}", _fenced(f"error: {error}"))
    if result.code != PASSED:
        announce("error", result.verdict.removeprefix("error: "))
    publish(result, os.environ)
    return result.code


if __name__ == "__main__":
    use_utf8()
    try:
        code = main()
    except Exception as error:
        announce("error", f"{type(error).__name__}: {error}")
        code = WRONG
    sys.exit(code)
