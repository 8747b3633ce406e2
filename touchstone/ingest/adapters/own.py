"""Adapters of the user's own: declared formats, and Python that the configuration names.

Whatever such Python raises becomes one line that names its file and line, and concerns only the file that was read.
"""

import hashlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import polars as pl

from touchstone.config.formats import AdapterSource
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.steps import Step
from touchstone.ingest.adapters.table import AdapterTable, RefusedRecordError, encodable, first_line
from touchstone.ingest.csv_rows import LINE
from touchstone.regular_files import read_bytes

_MAX_CODE_BYTES = 10_000_000
Result = TypeVar("Result")


def own_adapters(options: ReadOptions) -> list[Adapter]:
    """The adapters in Python, then the declared formats, in the order of the configuration."""
    return [*(each for source in options.adapters for each in _load(source)), *map(mapped_adapter, options.formats)]


@cache
def _load(source: AdapterSource) -> tuple[Adapter, ...]:
    """The adapters of a file or entry point; its code runs here, once in each process."""
    with _one_line(source):
        if source.entry is not None:
            module, _, name = source.entry.partition(":")
            found = [getattr(import_module(module), name)] if name else list(vars(import_module(module)).values())
        else:
            found = list(vars(_module(source)).values())
    own = tuple(_guarded(each, source) for each in found if isinstance(each, Adapter))
    if not own:
        raise TouchstoneError(f"{source.name}: no adapter in it; assign an `Adapter` of touchstone.adapters to a name")
    return own


def _module(source: AdapterSource) -> ModuleType:
    code = read_bytes(source.path, _MAX_CODE_BYTES)
    if hashlib.sha256(code).hexdigest() != source.sha256:
        raise TouchstoneError(f"{source.name}: changed since the configuration was read; run again")
    module = ModuleType(f"touchstone_adapter_{source.sha256[:16]}")
    module.__file__ = str(source.path)
    # Where dataclasses and pickle look for it.
    sys.modules[module.__name__] = module
    exec(compile(code, str(source.path), "exec"), vars(module))
    return module


@contextmanager
def _one_line(source: AdapterSource, path: Path | None = None) -> Iterator[None]:
    """Turn any exception of an adapter's code into an error that says where in it."""
    about = "" if path is None else f"{path}: "
    try:
        yield
    except (TouchstoneError, RefusedRecordError):
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(source.path)), None)
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(source.path) else line
        where = f"{source.name}, line {line}" if line is not None else source.name
        said = encodable(f"{type(error).__name__}: {first_line(error)}")
        raise InputFileError(f"{about}the adapter failed ({where}: {said})") from None


def _guarded(adapter: Adapter, source: AdapterSource) -> Adapter:
    """The adapter with its code guarded. It is asked about files only."""

    def recognizes(head: Head) -> bool:
        try:
            return not head.is_folder and bool(adapter.recognizes(head))
        except (Exception, SystemExit):
            # Reading it says why.
            return True

    def read(path: Path, options: ReadOptions) -> AdapterTable:
        with _one_line(source, path):
            adapter.recognizes(Head(path, options))
            table = adapter.read(path, options)
            if not isinstance(table, AdapterTable):
                raise TypeError(f"read returned {type(table).__name__} instead of an AdapterTable")
        with table.reading():
            lines = table.rows.select(pl.col(LINE).is_not_null().all() & pl.col(LINE).is_unique().all()).collect()
        if not lines.item():
            raise InputFileError(f"{path}: the adapter {source.name} gives two records the same line, or none")
        raw = table.raw_reader
        return replace(table, format=adapter.format, raw_reader=lambda *given: guarded(path, raw, *given))

    def guarded(path: Path, function: Callable[..., Result], *given: object) -> Result:
        with _one_line(source, path):
            return function(*given)

    def transcripts(table: AdapterTable) -> Iterator[tuple[int, Iterable[Step]]]:
        with _one_line(source, table.path):
            assert adapter.transcripts is not None
            for line, steps in adapter.transcripts(table):
                yield line, list(steps)

    return replace(
        adapter, recognizes=recognizes, read=read, transcripts=transcripts if adapter.transcripts is not None else None
    )
