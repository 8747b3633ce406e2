"""Modules that need no provider, each with what Terraform 1.11.4 says of it.

A recording is a file in `modules/`: the module's files and then Terraform's errors, each after a line with its name.
`python -m tests.validation.hcl.recordings` asks the terraform on PATH again and rewrites the errors.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from touchstone.validation.protocol import Diagnostic

FOLDER = Path(__file__).parent / "modules"
TERRAFORM = "1.11.4"
_ERRORS = "errors.jsonl"


@dataclass(frozen=True)
class Recording:
    name: str
    files: dict[str, bytes]
    errors: tuple[Diagnostic, ...]

    @property
    def root_files(self) -> dict[str, bytes]:
        """The files of the module itself, without those of modules that it calls."""
        return {path: content for path, content in self.files.items() if "/" not in path}


def recordings() -> list[Recording]:
    return [read(path) for path in sorted(FOLDER.glob("*.txt"))]


def read(path: Path) -> Recording:
    parts: dict[str, str] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if line.startswith("-- ") and line.endswith(" --\n"):
            name = line[3:-4]
            parts[name] = ""
        else:
            parts[name] += line
    errors = tuple(Diagnostic("error", **json.loads(line)) for line in parts.pop(_ERRORS, "").splitlines())
    return Recording(path.stem, {name: text.encode() for name, text in parts.items()}, errors)


def write(recording: Recording) -> None:
    text = "".join(f"-- {name} --\n{content.decode()}" for name, content in recording.files.items())
    text += f"-- {_ERRORS} --\n" + "".join(map(_as_line, recording.errors))
    (FOLDER / f"{recording.name}.txt").write_text(text, encoding="utf-8")


def _as_line(error: Diagnostic) -> str:
    said = {key: value for key, value in asdict(error).items() if key != "severity" and value not in (None, "")}
    return f"{json.dumps({'summary': '', 'detail': '', **said}, ensure_ascii=False)}\n"


def ask_terraform(files: Mapping[str, bytes], environment: Mapping[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """The errors of `terraform validate`, in reading order."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if any("/" in name for name in files):
            _terraform(folder, "init", "-backend=false", "-input=false")
        report = json.loads(_terraform(folder, "validate", "-json", environment=environment))
    return comparable(_diagnostic(entry) for entry in report["diagnostics"] if entry["severity"] == "error")


def comparable(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """In reading order, and with the members of a cycle sorted: Terraform names them in any order."""
    plain = [replace(error, summary=_sorted_cycle(error.summary)) for error in found]
    return tuple(sorted(plain, key=lambda error: list(map(str, (error.file, error.line or 0, *astuple(error))))))


def terraform_version() -> str:
    return str(json.loads(_terraform(".", "version", "-json"))["terraform_version"])


def _sorted_cycle(summary: str) -> str:
    head, cycle, members = summary.partition("Cycle: ")
    return head + cycle + ", ".join(sorted(members.split(", "))) if cycle else summary


def _diagnostic(entry: dict[str, Any]) -> Diagnostic:
    place = entry.get("range") or {"filename": None, "start": {}, "end": {}}
    ends = [place[end].get(unit) for unit in ("line", "column") for end in ("start", "end")]
    return Diagnostic(entry["severity"], entry["summary"], entry["detail"], place["filename"], *ends)


def _terraform(folder: str, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    settings = {"TF_CLI_CONFIG_FILE": os.devnull, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    command, environment = ["terraform", *arguments], {**os.environ, **settings, **(environment or {})}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    for known in recordings():
        write(Recording(known.name, known.files, ask_terraform(known.files)))
