"""Which files there are, which model each speaks for, and whether their bytes have changed."""

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError
from touchstone.files import replacing
from touchstone.ingest.foreign import ForeignTable, read_foreign, recognise

NATIVE = "native"

_NATIVE_SUFFIXES = ("_synthetic_fixes.csv", "_fixes.csv")
_SUFFIXES = (".csv", ".json", ".jsonl", ".ndjson")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,99}")


@dataclass(frozen=True)
class Source:
    """A file that speaks for a model. Files of other systems may speak for several."""

    model: str
    path: Path
    format: str = NATIVE


@dataclass(frozen=True)
class Discovery:
    """The files of a folder by model, what other systems' files hold, and the files that cannot be used."""

    sources: dict[str, list[Source]] = field(default_factory=dict)
    foreign: dict[Path, ForeignTable] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[Path]:
        """Every file that is used, once."""
        return sorted({source.path for sources in self.sources.values() for source in sources})


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
    for suffix in _NATIVE_SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name.removesuffix(".csv")


def discover(config: EvaluationConfig) -> Discovery:
    """The files in `fixes_dir` that the configuration asks for, recognised by name (native) or content (foreign)."""
    if not config.fixes_dir.is_dir():
        raise TouchstoneError(f"{config.fixes_dir}: no such folder; set 'fixes_dir' in the config")
    found = Discovery()
    models: set[str] = set()
    for path in sorted(config.fixes_dir.iterdir()):
        if path.suffix.lower() in _SUFFIXES:
            models |= _look_into(path, config, found)
    for model, sources in found.sources.items():
        native = [source.path.name for source in sources if source.format == NATIVE]
        if len(native) > 1:
            reason = f"{' and '.join(native)} both speak for the model '{model}'; "
            reason += "rename one or set 'data_type' in the config"
            found.refused.update(dict.fromkeys(native, reason))
    kept = {
        model: sources
        for model, sources in sorted(found.sources.items())
        if not any(source.path.name in found.refused for source in sources)
    }
    if not kept and not found.refused:
        raise TouchstoneError(_nothing_found(config, sorted(models)))
    return replace(found, sources=kept)


def _look_into(path: Path, config: EvaluationConfig, found: Discovery) -> set[str]:
    """Note what one file brings; returns all the models that it speaks for, asked for or not."""
    kind = None if path.name.startswith(".") else recognise(path)
    if kind is None and not path.name.endswith(_NATIVE_SUFFIXES):
        return set()
    synthetic = "synthetic" in path.name
    of_type = config.data_type == "all" or synthetic == (config.data_type == "synthetic")
    try:
        table = None if kind is None else read_foreign(path)
        names = [model_of(path)] if table is None else table.models()
        wanted = [name for name in names if of_type and _asked_for(name, config)]
        if not wanted:
            return set(names)
        if table is not None:
            found.foreign[path] = table
        for name in wanted:
            source = Source(check_name(name, "model"), path, kind or NATIVE)
            found.sources.setdefault(name, []).append(source)
    except TouchstoneError as error:
        found.refused[path.name] = str(error)
        return set()
    return set(names)


def _asked_for(model: str, config: EvaluationConfig) -> bool:
    return not config.models or any(wanted in model for wanted in config.models)


def _nothing_found(config: EvaluationConfig, models: list[str]) -> str:
    if not models:
        return f"{config.fixes_dir}: no fixes file; expected <model>_fixes.csv, or a file of a system that is known"
    names = ", ".join(models[:10])
    return (
        f"{config.fixes_dir}: no fixes file matches models={config.models} and data_type='{config.data_type}'; "
        f"there are: {names}{', …' if len(models) > 10 else ''}"
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
