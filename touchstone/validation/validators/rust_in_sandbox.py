"""The part of the Rust validator that runs inside the sandbox: build a crate, run each test alone, print one JSON.

The candidate's code runs here too, as the same user: in build scripts, macros and tests. So this process hides its
output and memory, trusts no output of the candidate, kills whatever a step leaves running, and notices when sources or
test programs change after they were built. Output of the candidate is passed on as text; interpreting it belongs in
`rust`. Standard library only: nothing else is readable here.
"""

import ctypes
import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_MESSAGES_BYTES = 16 * 2**20
_LIST_BYTES = 2**20
_OUTPUT_BYTES = 8192
_MOST_MESSAGES = 200
_MOST_CHARACTERS = 2000
_SOURCES = ("*.rs", "Cargo.toml")
_BYPASSED = 97
# A fix could silence its own warnings.
_CLIPPY_OPTIONS = ("--", "--force-warn", "clippy::all")

# A test program that passes returns from `main`. This library, preloaded, sees that, and then hands over a secret that
# the reporting process gave it before any code of the candidate ran. However else a program ends, with whatever exit
# code, it has bypassed the harness and may have printed anything.
_GUARD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*Main)(int, char **, char **);
typedef int (*Start)(Main, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
static Main candidate;
static pid_t first;
static int tells = -1;
static char secret[SECRET_BYTES];

__attribute__((constructor)) static void begin(void) {
  int asks;
  const char *given = getenv("TOUCHSTONE_GUARD");
  if (given && sscanf(given, "%d %d", &asks, &tells) == 2) {
    if (read(asks, secret, sizeof secret) != sizeof secret) tells = -1;
    close(asks);
    fcntl(tells, F_SETFD, FD_CLOEXEC);
  }
  first = getpid();
  unsetenv("TOUCHSTONE_GUARD");
  unsetenv("LD_PRELOAD");
}

static int watched(int count, char **arguments, char **environment) {
  int code = candidate(count, arguments, environment);
  if (code == 0 && getpid() == first && tells >= 0 && write(tells, secret, sizeof secret) < 0) code = 1;
  return code;
}

int __libc_start_main(Main main, int count, char **arguments, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
  Start start = (Start)dlsym(RTLD_NEXT, "__libc_start_main");
  Main entry = candidate ? main : watched;
  if (!candidate) candidate = main;
  return start(entry, count, arguments, init, fini, rtld_fini, stack_end);
}
"""
_SECRET_BYTES = 32
GUARDED = "--guarded"


@dataclass(frozen=True)
class StepResult:
    """The exit code and output of a step; long output keeps only its beginning and end.

    `returned`: it is a program with the guard, and its `main` returned 0.
    """

    exit_code: int
    stdout: str
    stderr: str
    returned: bool = False


def main() -> None:
    """Run all steps and print the report; or, for documentation tests, one program with the guard."""
    _isolate_process()
    if sys.argv[1] == GUARDED:
        _run_documentation_test(Path(sys.argv[2]), sys.argv[3:])
    # A separate target directory: with a shared one, a broken crate once used another's artifact and passed.
    folder = Path(tempfile.mkdtemp(prefix="touchstone-"))
    os.environ["CARGO_TARGET_DIR"] = str(folder / "target")
    findings: dict[str, Any] = {"guarded": False, "tampered": [], "programs": [], "documentation": []}
    _validate_crate(json.loads(sys.argv[1]), folder, findings)
    print(json.dumps(findings))


def _validate_crate(plan: Mapping[str, Any], folder: Path, findings: dict[str, Any]) -> None:
    """Add what every step says to the findings, until one fails."""
    root = Path(plan["root"]).resolve()
    from_root = functools.partial(_from_root, root, _workspace(plan["cargo"]))
    sources = _digests(path for pattern in _SOURCES for path in root.rglob(pattern))
    without_harness = _without_harness(root)
    guard = _build_guard(folder)
    if guard is None:
        return
    findings["guarded"] = True
    sources |= _digests([guard])
    findings["build"], _ = _cargo(plan, from_root, "build")
    if findings["build"]["exit_code"] != 0:
        return
    findings["test_build"], artifacts = _cargo(plan, from_root, "test", "--no-run")
    if plan["clippy"]:
        findings["clippy"], _ = _cargo({**plan, "cargo": plan["clippy"]}, from_root, "clippy", after=_CLIPPY_OPTIONS)
    if findings["test_build"]["exit_code"] != 0:
        return
    programs = [each for each in artifacts if each.get("executable") and each["profile"]["test"]]
    sealed = _digests([Path(each["executable"]) for each in programs] + [guard])
    findings["tampered"] = _changed(sources)
    for artifact in programs:
        if _key(artifact) not in without_harness and not findings["tampered"]:
            findings["programs"].append(_run_tests(artifact, guard, plan, sealed, findings["tampered"]))
    for manifest in sorted({each["manifest_path"] for each in programs if each["target"]["doctest"]}):
        runner = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), GUARDED, str(guard)]
        options = ["--config", f'target."cfg(all())".runner={json.dumps(runner)}', *plan["options"]]
        line = [plan["cargo"], "test", "--doc", "--offline", "--manifest-path", manifest, *options]
        findings["documentation"].append(asdict(_run([*line, "--", "--test-threads=2"], most=_LIST_BYTES)))


def _workspace(cargo: str) -> Path:
    """The folder that compiler paths are relative to; the current one if the manifest is too broken to tell."""
    located = _run([cargo, "locate-project", "--workspace", "--offline", "--message-format=plain"])
    return Path(located.stdout.strip()).parent if located.exit_code == 0 else Path.cwd()


def _from_root(root: Path, workspace: Path, file: str) -> str:
    """A path relative to the workspace, as the compiler says it, as one relative to the tree's root."""
    path = Path(os.path.normpath(workspace / file))
    return str(path.relative_to(root)) if path.is_relative_to(root) else file


def _cargo(
    plan: Mapping[str, Any], from_root: Callable[[str], str], *words: str, after: Sequence[str] = ()
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run one cargo command; returns its summary for the report, and the artifacts it built."""
    line = [plan["cargo"], *words, "--offline", "--message-format=json", *plan["options"], *after]
    ran = _run(line, most=_MESSAGES_BYTES)
    messages = [json.loads(each) for each in ran.stdout.splitlines() if each.startswith('{"reason":')]
    spoken = [each["message"] for each in messages if each["reason"] == "compiler-message"]
    shown = [
        _shortened(each, from_root) for each in spoken if each["level"] in ("error", "warning") and _is_about_code(each)
    ]
    worst_first = sorted(shown, key=lambda each: str(each["level"]))
    made = [each for each in messages if each["reason"] == "compiler-artifact"]
    step = {
        "exit_code": ran.exit_code,
        "messages": worst_first[:_MOST_MESSAGES],
        "warnings": sum(each["level"] == "warning" or each["code"].startswith("clippy::") for each in shown),
        "stderr": ran.stderr[-_MOST_CHARACTERS:],
        "started": bool(messages),
    }
    return step, made


def _is_about_code(message: Mapping[str, Any]) -> bool:
    """False for closing summaries such as "2 warnings emitted" or "aborting due to 1 previous error"."""
    return bool(message["spans"] or message["code"] or message["children"])


def _shortened(message: Mapping[str, Any], from_root: Callable[[str], str]) -> dict[str, Any]:
    place = next((span for span in message["spans"] if span["is_primary"]), None)
    labels = [span["label"] for span in message["spans"] if span["label"]]
    notes = [child["message"] for child in message["children"]]
    return {
        "level": message["level"],
        "message": message["message"][:_MOST_CHARACTERS],
        "code": (message["code"] or {}).get("code", ""),
        "detail": "\n".join([*labels, *notes])[:_MOST_CHARACTERS],
        "file": place and from_root(place["file_name"]),
        "line": place and place["line_start"],
        "end_line": place and place["line_end"],
        "column": place and place["column_start"],
        "end_column": place and place["column_end"],
    }


def _run_tests(
    artifact: Mapping[str, Any], guard: Path, plan: Mapping[str, Any], sealed: Mapping[Path, str], tampered: list[str]
) -> dict[str, Any]:
    """Run each test of one program by exact name, in its own process."""
    program = artifact["executable"]
    package = Path(artifact["manifest_path"]).parent
    libraries = f"{Path(program).parent}:{plan['libraries']}"
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(package), "LD_LIBRARY_PATH": libraries}
    listed = _run_guarded([program, "--list", "--format=terse"], guard, package, environment, _LIST_BYTES)
    names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
    runs = []
    for name in names:
        tampered += _changed({path: sealed[path] for path in sealed if path in (Path(program), guard)})
        if tampered:
            break
        line = [program, "--exact", name, "--test-threads=2", "--color=never"]
        ran = _run_guarded(line, guard, package, environment)
        runs.append({"test": name, **asdict(ran)})
    return {"target": artifact["target"]["name"], "listed": asdict(listed), "runs": runs}


def _run_documentation_test(guard: Path, line: Sequence[str]) -> None:
    """Run the program of a documentation test for rustdoc, and end as it did unless it bypassed its `main`."""
    ran = _run_guarded(line, guard, None, os.environ, _LIST_BYTES)
    sys.stdout.write(ran.stdout)
    sys.stderr.write(ran.stderr)
    sys.exit(_BYPASSED if ran.exit_code == 0 and not ran.returned else ran.exit_code)


def _run_guarded(
    line: Sequence[str], guard: Path, directory: Path | None, environment: Mapping[str, str], most: int = _OUTPUT_BYTES
) -> StepResult:
    """Run a program of the candidate with the guard."""
    secret = os.urandom(_SECRET_BYTES)
    asks, gives = os.pipe()
    hears, tells = os.pipe()
    os.write(gives, secret)
    os.close(gives)
    guarded = {**environment, "LD_PRELOAD": str(guard), "TOUCHSTONE_GUARD": f"{asks} {tells}"}
    try:
        ran = _run(line, directory, guarded, most, (asks, tells))
    finally:
        os.close(asks)
        os.close(tells)
    os.set_blocking(hears, False)
    with os.fdopen(hears, "rb", buffering=0) as answer:
        answered = answer.read(_SECRET_BYTES + 1)
    return replace(ran, returned=answered == secret)


def _run(
    line: Sequence[str],
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    most: int = _OUTPUT_BYTES,
    inherited: Sequence[int] = (),
) -> StepResult:
    """Run a step and kill what it leaves running. Output goes to files: left-over processes would block pipes."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        ended = subprocess.run(
            line,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=inherited,
        )
        _end_leftovers()
        texts = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(_ends(file.read(_MESSAGES_BYTES), most).decode("utf-8", "replace"))
    return StepResult(ended.returncode, texts[0], texts[1])


def _ends(output: bytes, most: int) -> bytes:
    """The output without its middle if it is too long: the harness prints at the beginning and the end."""
    return output if len(output) <= most else output[: most // 2] + b"\n[...]\n" + output[-most // 2 :]


def _isolate_process() -> None:
    """Hide memory, environment and open files from other processes of this user, and adopt orphans."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) or libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl was refused")


def _end_leftovers() -> None:
    with suppress(ChildProcessError):  # raised once no child is left
        while True:
            for child in _children():
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int]:
    """The children of this process, which has only one thread."""
    me = os.getpid()
    return [int(each) for each in Path(f"/proc/{me}/task/{me}/children").read_text().split()]


def _build_guard(folder: Path) -> Path | None:
    """Build the library that tells how a program ended; None without a C compiler."""
    source, library = folder / "guard.c", folder / "guard.so"
    source.write_text(_GUARD.replace("SECRET_BYTES", str(_SECRET_BYTES)))
    try:
        built = _run(["cc", "-shared", "-fPIC", "-O1", "-w", "-o", str(library), str(source), "-ldl"])
    except OSError:
        return None
    return library if built.exit_code == 0 else None


def _without_harness(root: Path) -> set[tuple[str, str, str]]:
    """The targets whose manifest replaces the test harness by their own `main`."""
    found = set()
    for manifest in root.rglob("Cargo.toml"):
        try:
            parsed = tomllib.loads(manifest.read_text())
            for kind in ("lib", "bin", "test", "example"):
                targets = parsed.get(kind, [])
                for target in targets if isinstance(targets, list) else [targets]:
                    if target.get("harness") is False:
                        found.add((str(manifest), kind, "" if kind == "lib" else str(target.get("name"))))
        except (ValueError, AttributeError, RecursionError):
            continue
    return found


def _key(artifact: Mapping[str, Any]) -> tuple[str, str, str]:
    kind, name = artifact["target"]["kind"][0], artifact["target"]["name"]
    return (artifact["manifest_path"], *((kind, name) if kind in ("bin", "test", "example") else ("lib", "")))


def _digests(paths: Iterator[Path] | Sequence[Path]) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _changed(digests: Mapping[Path, str]) -> list[str]:
    """The files whose content has changed."""
    return [str(path) for path, digest in digests.items() if not path.is_file() or _digests([path])[path] != digest]


if __name__ == "__main__":
    main()
