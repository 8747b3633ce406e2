"""Which files there are, which model each speaks for, and whether their bytes have changed."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError
from touchstone.files import replacing

_SUFFIXES = ("_synthetic_fixes.csv", "_fixes.csv")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")


@dataclass(frozen=True)
class Source:
    """One fixes file and the model that it speaks for."""

    model: str
    path: Path


@dataclass(frozen=True)
class Discovery:
    """The fixes files of a folder by model, and the files that cannot be used with the reason."""

    sources: dict[str, Source] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def check_name(name: str, what: str) -> str:
    """A name that may become a path, a partition key or an SQL identifier; anything else is refused.

    >>> check_name("gpt-4.1+tools", "model")
    'gpt-4.1+tools'
    """
    if not _NAME.fullmatch(name):
        raise TouchstoneError(
            f"{what} name {name!r} is not allowed: use 1 to 100 letters, digits and . _ + - "
            "and start with a letter, digit or _"
        )
    return name


def model_of(path: Path) -> str:
    """The model that a fixes file speaks for, by its name.

    >>> model_of(Path("out/gemini_synthetic_fixes.csv")), model_of(Path("gpt-4_fixes.csv"))
    ('gemini', 'gpt-4')
    """
    for suffix in _SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name.removesuffix(".csv")


def discover(config: EvaluationConfig) -> Discovery:
    """The fixes files that the configuration asks for."""
    if not config.fixes_dir.is_dir():
        raise TouchstoneError(f"{config.fixes_dir}: no such folder; set 'fixes_dir' in the config")
    present = sorted(path for path in config.fixes_dir.iterdir() if path.name.endswith(_SUFFIXES[1]))
    wanted = [path for path in present if _wanted(path, config)]
    if not wanted:
        raise TouchstoneError(_nothing_found(config, present))
    by_model: dict[str, list[Path]] = {}
    for path in wanted:
        by_model.setdefault(model_of(path), []).append(path)
    found = Discovery()
    for model, paths in by_model.items():
        try:
            check_name(model, "model")
        except TouchstoneError as error:
            found.refused.update({path.name: str(error) for path in paths})
            continue
        if len(paths) > 1:
            names = " and ".join(path.name for path in paths)
            reason = f"{names} both speak for the model '{model}'; rename one or set 'data_type' in the config"
            found.refused.update({path.name: reason for path in paths})
            continue
        found.sources[model] = Source(model, paths[0])
    return found


def _wanted(path: Path, config: EvaluationConfig) -> bool:
    synthetic = "synthetic" in path.name
    of_type = config.data_type == "all" or synthetic == (config.data_type == "synthetic")
    model = model_of(path)
    return of_type and (not config.models or any(wanted in model for wanted in config.models))


def _nothing_found(config: EvaluationConfig, present: list[Path]) -> str:
    if not present:
        return f"{config.fixes_dir}: no fixes file; expected <model>_fixes.csv"
    names = ", ".join(model_of(path) for path in present[:10])
    return (
        f"{config.fixes_dir}: no fixes file matches models={config.models} and data_type='{config.data_type}'; "
        f"there are: {names}{', …' if len(present) > 10 else ''}"
    )


class ContentHashes:
    """SHA-256 of files, remembered by size, times and inode so that an untouched file is not read again."""

    # A file changed within the clock's grain of being hashed could keep its times; such a hash is not kept.
    _SETTLED_NS = 2_000_000_000

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        try:
            self._known: dict[str, list[object]] = json.loads(memory.read_text())
        except (OSError, ValueError):
            self._known = {}

    def of(self, path: Path) -> str:
        """The SHA-256 of the file's bytes, in hexadecimal."""
        before = path.stat()
        mark = [before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_ino]
        known = self._known.get(str(path))
        if known is not None and known[:-1] == mark:
            return str(known[-1])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[str(path)] = [*mark, digest]
        return digest

    def save(self, now_ns: int) -> None:
        """Keep what was learned about files that have settled."""
        settled = {
            path: mark
            for path, mark in self._known.items()
            if now_ns - max(int(str(mark[1])), int(str(mark[2]))) > self._SETTLED_NS
        }
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._memory) as scratch:
            scratch.write_text(json.dumps(settled))
