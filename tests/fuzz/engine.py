"""A fuzzer for where atheris is not installed: mutates the corpus and keeps what reaches lines for the first time.

Coverage is that of Touchstone's own modules, by Python's trace function; libraries are not traced.
"""

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import touchstone
from tests.fuzz.targets import Target

MAX_BYTES = 8_192
MAX_SECONDS = 10
_PACKAGE = str(Path(touchstone.__file__).parent)
_MAX_KEPT = 2_000


class HangError(AssertionError):
    """One input took more CPU time than any input of this size may."""


@dataclass
class CrashError(Exception):
    """The input that made a reader do what it never may; the cause is chained."""

    data: bytes


@dataclass
class Session:
    """One target being fuzzed: what was kept so far, and the lines that it reached."""

    target: Target
    seed: int = 0
    kept: list[bytes] = field(default_factory=list)
    reached: set[tuple[str, int]] = field(default_factory=set)
    inputs: int = 0

    def run(self, seconds: float) -> None:
        """Try inputs until the time is up; raises `CrashError` for the first that must not happen."""
        end = time.monotonic() + seconds
        for data in self.target.corpus():
            self.try_input(data)
        chance = random.Random(self.seed)
        while time.monotonic() < end:
            self.try_input(mutated(chance, self.kept or [b""], self.target.words))

    def try_input(self, data: bytes) -> None:
        """Try one input, and keep it if it reaches something new."""
        before = len(self.reached)
        self.inputs += 1
        try:
            with time_limit(), _traced(self.reached):
                self.target.one_input(data)
        except (Exception, RecursionError) as error:
            raise CrashError(data) from error
        if len(self.reached) > before and len(self.kept) < _MAX_KEPT:
            self.kept.append(data)


def mutated(chance: random.Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of the corpus with a few changes: bytes flipped, cut, repeated, spliced, or words put in."""
    data = bytearray(chance.choice(corpus)[:MAX_BYTES])
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        chance.choice(_MUTATIONS)(chance, data, corpus, words)
    return bytes(data[:MAX_BYTES])


def _span(chance: random.Random, data: bytearray, most: int = 64) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.randint(1, most))


def _flip(chance: random.Random, data: bytearray, *_: object) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(chance: random.Random, data: bytearray, *_: object) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.choice((0, 10, 34, 44, 127, 128, 255, chance.randrange(256)))


def _cut(chance: random.Random, data: bytearray, *_: object) -> None:
    start, end = _span(chance, data)
    del data[start : len(data) if chance.random() < 0.1 else end]


def _repeat(chance: random.Random, data: bytearray, *_: object) -> None:
    start, end = _span(chance, data, 200)
    data[end:end] = data[start:end] * chance.choice((1, 1, 2, 50))


def _splice(chance: random.Random, data: bytearray, corpus: Sequence[bytes], _: object) -> None:
    other = bytearray(chance.choice(corpus))
    start, end = _span(chance, other, 500)
    place, until = _span(chance, data)
    data[place : until if chance.random() < 0.5 else place] = other[start:end]


def _insert_word(chance: random.Random, data: bytearray, _: object, words: Sequence[bytes]) -> None:
    place = chance.randrange(len(data) + 1)
    data[place:place] = chance.choice(words) if words else chance.randbytes(chance.randint(1, 4))


def _change_number(chance: random.Random, data: bytearray, *_: object) -> None:
    places = [place for place, code in enumerate(data) if 48 <= code <= 57]
    if places:
        place = chance.choice(places)
        data[place : place + 1] = chance.choice((b"0", b"-1", b"9" * 20, b"1e400", b"0x", b"2147483648"))


_MUTATIONS: tuple[Callable[..., None], ...] = (
    _flip,
    _overwrite,
    _cut,
    _repeat,
    _splice,
    _insert_word,
    _insert_word,
    _change_number,
)


@contextmanager
def time_limit(seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Raise `HangError` after so much CPU time of this process; does nothing outside the main thread."""

    def stop(*_: object) -> None:
        raise HangError(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _traced(reached: set[tuple[str, int]]) -> Iterator[None]:
    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            reached.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: FrameType, _: str, __: object) -> Any:
        return line if frame.f_code.co_filename.startswith(_PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)
