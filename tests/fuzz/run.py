"""Fuzz one reader, or all of them one after the other: the command behind `make fuzz`.

    python -m tests.fuzz.run csv --seconds 600
    python -m tests.fuzz.run --list

With atheris, libFuzzer guides the mutations by coverage; without it, `engine` does. An input that crashes a reader is
written to `crashes/`, shortened; put it into `tests/fuzz/corpus/<target>/` with the fix.
"""

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tests.fuzz.engine import MAX_BYTES, MAX_SECONDS, CrashError, Session, time_limit
from tests.fuzz.targets import TARGETS, Target

_SHORTENING_SECONDS = 20


def main() -> int:
    """Fuzz what the arguments name; 1 if a reader crashed."""
    arguments = _arguments()
    if arguments.list:
        print("\n".join(TARGETS))
        return 0
    if arguments.with_atheris is not None:
        _run_atheris(TARGETS[arguments.targets[0]], arguments)
    guided = importlib.util.find_spec("atheris") is not None and not arguments.own_engine
    fuzz = _in_process_of_its_own if guided else _fuzz
    crashed = [name for name in arguments.targets or TARGETS if not fuzz(TARGETS[name], arguments)]
    if crashed:
        print(f"crashed: {', '.join(crashed)}")
    return 1 if crashed else 0


def _fuzz(target: Target, arguments: argparse.Namespace) -> bool:
    session = Session(target, arguments.seed)
    started = time.monotonic()
    try:
        session.run(arguments.seconds)
    except CrashError as crash:
        path = _keep(target, _shortened(target, crash.data), arguments.crashes)
        traceback.print_exception(crash.__cause__)
        print(f"{target.name}: crash after {session.inputs:,} inputs; see {path}")
        return False
    seconds = time.monotonic() - started
    print(
        f"{target.name}: {session.inputs:,} inputs in {seconds:.0f} s, {len(session.kept):,} kept, "
        f"{len(session.reached):,} lines reached",
        flush=True,
    )
    return True


def _shortened(target: Target, data: bytes) -> bytes:
    """The shortest part of a crashing input that still crashes, found in a few seconds."""
    end = time.monotonic() + _SHORTENING_SECONDS
    step = len(data) // 2
    while step and time.monotonic() < end:
        for start in range(0, len(data), step):
            shorter = data[:start] + data[start + step :]
            if time.monotonic() < end and _crashes(target.one_input, shorter):
                data = shorter
                break
        else:
            step //= 2
    return data


def _crashes(one_input: Callable[[bytes], None], data: bytes) -> bool:
    try:
        with time_limit():
            one_input(data)
    except Exception:
        return True
    return False


def _keep(target: Target, data: bytes, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{target.name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def _in_process_of_its_own(target: Target, arguments: argparse.Namespace) -> bool:
    """libFuzzer ends its process, so every target has one."""
    arguments.crashes.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="touchstone-fuzz-") as corpus:
        for place, data in enumerate(target.corpus()):
            Path(corpus, str(place)).write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz.run", target.name, "--with-atheris", corpus]
        command += ["--seconds", str(arguments.seconds), "--crashes", str(arguments.crashes)]
        done = subprocess.run(command, check=False)
    print(f"{target.name}: {'done' if done.returncode == 0 else f'stopped with {done.returncode}'}", flush=True)
    return done.returncode == 0


def _run_atheris(target: Target, arguments: argparse.Namespace) -> NoReturn:
    import atheris

    # The modules are imported already, so their functions are instrumented in place.
    atheris.instrument_all()
    limits = [f"-max_total_time={arguments.seconds:.0f}", f"-max_len={MAX_BYTES}", f"-timeout={6 * MAX_SECONDS}"]
    options = ["-rss_limit_mb=4096", "-print_final_stats=1", f"-artifact_prefix={arguments.crashes}/{target.name}-"]
    atheris.Setup([target.name, *limits, *options, str(arguments.with_atheris)], target.one_input)
    atheris.Fuzz()
    sys.exit(0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fuzz Touchstone's readers.")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET", help="by default all of them")
    parser.add_argument("--seconds", type=float, default=60, help="per target")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--crashes", type=Path, default=Path("crashes"), help="where crashing inputs are written")
    parser.add_argument("--own-engine", action="store_true", help="do not use atheris")
    parser.add_argument("--list", action="store_true", help="list the targets")
    parser.add_argument("--with-atheris", type=Path, metavar="CORPUS", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
