"""Makes environments with uv or pip, once for each set of requirements; afterwards everything works offline.

The only part of validation that installs anything. It runs outside the sandbox, as installing packages always does.
It also lists the environments that problems need, and those that are there.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import filelock

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.progress import report_step, track
from touchstone.validation.environments import ABOUT, environment_name, packages_of
from touchstone.validation.sandbox.interpreters import Interpreter, interpreter
from touchstone.validation.targets import NoTarget, Target

_LOCK = ".lock"
_UNFINISHED = ".unfinished-"
_MAX_MESSAGE = 400


@dataclass(frozen=True)
class PreparedEnvironment:
    """An environment that `touchstone environments prepare` made."""

    name: str
    requirements: tuple[str, ...]


@dataclass(frozen=True)
class InstallOptions:
    """Where packages are installed from, besides what uv or pip are configured to use."""

    find_links: Sequence[str] = ()
    no_index: bool = False

    @property
    def arguments(self) -> list[str]:
        """The options as both uv and pip take them."""
        links = [part for place in self.find_links for part in ("--find-links", place)]
        return [*links, *(["--no-index"] if self.no_index else [])]


def prepare(
    folder: Path, wanted: Iterable[tuple[str, ...]], python: Interpreter, options: InstallOptions
) -> dict[tuple[str, ...], str]:
    """Make an environment for each set of requirements that has none; returns why each of the others failed."""
    sets, failures = sorted(set(wanted)), dict[tuple[str, ...], str]()
    if not sets:
        return failures
    # An output folder may come from elsewhere, and what is written through a link inside it ends up outside.
    for place in (folder, folder / _LOCK, *(folder / environment_name(each, python) for each in sets)):
        if place.is_symlink():
            raise TouchstoneError(f"{place}: is a link, through which nothing is installed; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder / _LOCK, timeout=0):
            # Nobody else is preparing, so these were left by a killed preparation.
            for left in folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
            with track("preparing environments", len(sets)) as advance:
                for requirements in sets:
                    report_step(f"installing {', '.join(requirements)}")
                    failure = _prepare_one(folder, requirements, python, options)
                    failures |= {requirements: failure} if failure is not None else {}
                    advance(1)
    except filelock.Timeout:
        raise TouchstoneError(f"{folder}: another process is preparing environments; wait for it to end") from None
    return failures


def prepared_environments(folder: Path) -> list[PreparedEnvironment]:
    """The environments that were prepared in a folder, by name."""
    found = []
    for about in sorted(folder.glob(f"[!.]*/{ABOUT}")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            requirements = tuple(map(str, json.loads(about.read_bytes())["requirements"]))
            found.append(PreparedEnvironment(about.parent.name, requirements))
    return found


def _prepare_one(
    folder: Path, requirements: tuple[str, ...], python: Interpreter, options: InstallOptions
) -> str | None:
    """Install into a temporary sibling, renamed when complete; returns why that failed."""
    made = folder / environment_name(requirements, python)
    if (made / ABOUT).is_file():
        return None
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
    try:
        packages = packages_of(unfinished, python)
        packages.mkdir(parents=True)
        listed = unfinished / "requirements.txt"
        listed.write_text("".join(f"{line}\n" for line in requirements))
        command = [*_installer(python), *options.arguments, "--target", str(packages), "--requirement", str(listed)]
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        if ended.returncode != 0:
            return " ".join((ended.stderr or ended.stdout).split())[:_MAX_MESSAGE] or f"exit code {ended.returncode}"
        about = {"requirements": requirements, "python": python.version}
        (unfinished / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
        # Other users must be able to read it, as the sandbox's user is one.
        unfinished.chmod(0o755)
        shutil.rmtree(made, ignore_errors=True)
        unfinished.rename(made)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return None


def _installer(python: Interpreter) -> list[str]:
    """The beginning of a command line that installs packages for an interpreter."""
    program = str(python.program)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        how = ["--quiet", "--no-progress", "--link-mode", "copy", "--compile-bytecode"]
        return [uv, "pip", "install", *how, "--python", program]
    how = ["install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", program, *how]
    has_pip = subprocess.run([program, "-I", "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode == 0:
        return [program, "-I", "-m", "pip", *how]
    raise TouchstoneError("neither uv nor pip is installed; install uv (pip install uv, or see its documentation)")


@dataclass(frozen=True)
class ListedEnvironment:
    """One environment: `ready` if it can be used, and how many problems need it."""

    name: str
    ready: bool
    problems: int
    requirements: tuple[str, ...]


def list_environments(settings: ValidationSettings, targets: Iterable[Target | NoTarget]) -> list[ListedEnvironment]:
    """All environments, by name."""
    folder, python = settings.environments_dir, interpreter(settings.python.interpreter)
    prepared = {one.name: one.requirements for one in prepared_environments(folder)} if folder is not None else {}
    ready: Counter[str] = Counter()
    missing: Counter[tuple[str, ...]] = Counter()
    for target in targets:
        if isinstance(target, NoTarget):
            missing.update([target.requirements] if target.requirements else [])
        elif (place := target.problem.environment) is not None:
            inside = folder is not None and place.parent == folder.resolve()
            ready[place.name if inside else str(place)] += 1
    found = [
        ListedEnvironment(name, True, ready[name], prepared.get(name, ())) for name in {*ready.keys(), *prepared.keys()}
    ]
    found += [ListedEnvironment(environment_name(some, python), False, count, some) for some, count in missing.items()]
    return sorted(found, key=lambda one: one.name)
