"""The header and the samples of an Inspect AI log, from a `.eval` archive or from one JSON file.

An archive has a summary of every sample, which is enough for scores, errors, usage and times. The sample itself, with
its transcript, is read only where the summary lacks some of that: files of 2024, invalidated samples, and samples that
a killed run wrote without a summary. Of several entries for one sample and epoch the last counts, as in Inspect.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters.json_files import DECODER, parse_line
from touchstone.ingest.adapters.json_stream import BrokenJsonError, Each, Keep, Shape, skim
from touchstone.ingest.adapters.table import RefusedRecordError
from touchstone.ingest.archives import DamagedMemberError, ZipArchive
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import readable
from touchstone.progress import report_step

START, HEADER, SUMMARIES = "_journal/start.json", "header.json", "summaries.json"
ARCHIVE_MARK = b"PK\x03\x04"
RETRIES = "error_retries"

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_STEP_BYTES = 32 << 20
_STEP_SAMPLES = 1000
# Summaries up to this size, some 25,000, are parsed in one go; they take ten times as much memory.
_AT_ONCE_BYTES = 8 << 20
_HEADER_SHAPE: dict[str, Shape] = {"eval": Keep(), "plan": Keep(), "results": Keep(), "error": Keep()}
_SAMPLE_KEYS = ("input", "scores", "score", "model_usage", "metadata", "error", "limit", "invalidation")
_SAMPLE_SHAPE: dict[str, Shape] = {**dict.fromkeys(_SAMPLE_KEYS, Keep()), RETRIES: Each({})}
_CHAT_SHAPE: Shape = {**_SAMPLE_SHAPE, "messages": Keep(), "attachments": Keep()}
_JOURNAL = re.compile(r"_journal/summaries/(\d{1,9})\.json")
# Very long transcripts are stored in parts, beside the rest of the sample.
_SAMPLE_NAME = re.compile(r"samples/(.+)_epoch_(\d{1,9})(?:\.json|/sample\.json)", re.DOTALL)

Key = tuple[str, str]
Object = Mapping[str, object]


class RawSample(NamedTuple):
    """One sample: its JSON text without the transcript, if that was asked for, and its content or why it has none."""

    text: bytes
    content: Object | RefusedRecordError


class Log(Protocol):
    """An open log. `header` and `finished` are known once all samples have been read."""

    header: Object
    # Whether the run ended by itself and said how.
    finished: bool
    # Whether a later sample with the same id and epoch replaces an earlier one.
    replaces: bool
    notes: list[str]

    def samples(self) -> Iterator[RawSample]:
        """All samples, in the order of the file."""


@contextmanager
def open_log(path: Path, *, keep_text: bool = False, keep_chat: bool = False) -> Iterator[Log]:
    """Open a log; raises `InputFileError` if it is not one, or damaged.

    `keep_text` asks for the text of samples, `keep_chat` for their messages.
    """
    with readable(path), open_input(path) as file:
        start = file.read(_CHUNK)
        file.seek(0)
        if not start.strip():
            raise InputFileError(f"{path}: the file is empty")
        if start.startswith(b"version https://git-lfs"):
            raise InputFileError(f"{path}: a Git LFS pointer, not the log; run `git lfs pull`")
        if start.startswith(ARCHIVE_MARK):
            yield _ArchiveLog(path, file, keep_text=keep_text, keep_chat=keep_chat)
        elif start.removeprefix(_BOM).lstrip()[:1] == b"{":
            yield _JsonLog(path, file, keep_chat=keep_chat)
        else:
            raise InputFileError(f"{path}: not an Inspect log; it is neither a ZIP file nor a JSON object")


def sample_key(content: Object) -> Key:
    """The key of an attempt within a log; Inspect compares ids as text, too."""
    return str(content.get("id")), str(content.get("epoch"))


class _JsonLog:
    replaces = False

    def __init__(self, path: Path, file: IO[bytes], *, keep_chat: bool) -> None:
        self._path, self._file = path, file
        self._shape: Shape = {**_HEADER_SHAPE, "samples": Each(_CHAT_SHAPE if keep_chat else _SAMPLE_SHAPE)}
        self.header: Object = {}
        self.finished = True
        self.notes: list[str] = []

    def samples(self) -> Iterator[RawSample]:
        retries = 0
        with _json_errors(str(self._path)):
            for name, text in skim(self._chunks(), self._shape):
                if name == RETRIES:
                    retries += 1
                elif name == "samples":
                    yield _sample(text, retries)
                    retries = 0
                else:
                    self.header = _header(self._path, text)

    def _chunks(self) -> Iterator[bytes]:
        done = 0
        for chunk in iter(lambda: self._file.read(_CHUNK), b""):
            yield chunk.removeprefix(_BOM) if done == 0 else chunk
            done += len(chunk)
            if done % _STEP_BYTES == 0:
                report_step(f"{self._path.name}: {done >> 20:,} MiB read")


class _ArchiveLog:
    replaces = True

    def __init__(self, path: Path, file: IO[bytes], *, keep_text: bool, keep_chat: bool) -> None:
        self._path = path
        self._keep_text, self._keep_chat = keep_text, keep_chat
        self._archive = ZipArchive(path, file)
        members = self._archive.members
        name = next((name for name in (HEADER, START) if name in members), None)
        if name is None:
            raise InputFileError(f"{path}: a ZIP file, but no Inspect log; it has neither {HEADER} nor {START}")
        with _json_errors(f"{path}: {name}"):
            self.header = _header(path, self._text(name, _HEADER_SHAPE)[0])
        self.finished = name == HEADER
        self.notes: list[str] = []
        self._read_in_full = 0

    def samples(self) -> Iterator[RawSample]:
        found = ((_SAMPLE_NAME.fullmatch(name), name) for name in self._archive.members)
        members = {(match[1], match[2]): name for match, name in found if match}
        with_summary = set()
        read_all = self._keep_chat or self.header.get("invalidated") is True
        for summary in self._summaries():
            if isinstance(summary.content, RefusedRecordError):
                yield summary
                continue
            key = sample_key(summary.content)
            with_summary.add(key)
            if key in members and (read_all or "model_usage" not in summary.content):
                yield self._completed(summary, members[key])
            else:
                yield summary
        without = [name for key, name in members.items() if key not in with_summary]
        yield from map(self._sample, without)
        if without:
            self.notes.append(f"{len(without)} samples have no summary and were read in full")

    def _summaries(self) -> Iterator[RawSample]:
        for name in self._summary_members():
            content = b"".join(self._archive.chunks(name)) if self._is_small(name) else None
            at_once = None if content is None or self._keep_text else _list_at_once(content)
            if at_once is not None:
                yield from at_once
                continue
            chunks = self._archive.chunks(name) if content is None else [content]
            with _json_errors(f"{self._path}: {name}"):
                for key, text in skim(chunks, Each(Keep())):
                    if key is not None:
                        yield _sample(text)
                    elif not text.strip().startswith(b"["):
                        raise BrokenJsonError("no list")

    def _is_small(self, name: str) -> bool:
        return self._archive.members[name].file_size <= _AT_ONCE_BYTES

    def _summary_members(self) -> list[str]:
        if SUMMARIES in self._archive.members:
            return [SUMMARIES]
        found = filter(None, map(_JOURNAL.fullmatch, self._archive.members))
        return [match[0] for match in sorted(found, key=lambda match: int(match[1]))]

    def _completed(self, summary: RawSample, member: str) -> RawSample:
        """The summary with what only the sample itself says."""
        sample = self._sample(member)
        if isinstance(sample.content, RefusedRecordError) or isinstance(summary.content, RefusedRecordError):
            return RawSample(summary.text, sample.content)
        return RawSample(summary.text, {**summary.content, **sample.content})

    def _sample(self, member: str) -> RawSample:
        try:
            text, retries = self._text(member, _CHAT_SHAPE if self._keep_chat else _SAMPLE_SHAPE)
        except DamagedMemberError as error:
            return RawSample(b"", RefusedRecordError("ragged", reason_of(error, self._path)))
        except BrokenJsonError as error:
            return RawSample(b"", RefusedRecordError("ragged", f"broken JSON in {member!r} ({error})"))
        self._read_in_full += 1
        if self._read_in_full % _STEP_SAMPLES == 0:
            report_step(f"{self._path.name}: {self._read_in_full:,} samples read in full")
        return _sample(text, retries)

    def _text(self, member: str, shape: Shape) -> tuple[bytes, int]:
        """The text of a member without what the shape drops, and how many retries it lists."""
        *retries, (_, text) = skim(self._archive.chunks(member), shape)
        return text, len(retries)


@contextmanager
def _json_errors(where: str) -> Iterator[None]:
    try:
        yield
    except BrokenJsonError as error:
        raise InputFileError(f"{where}: broken JSON ({error})") from None


def _header(path: Path, text: bytes) -> Object:
    content = _parsed(text)
    if isinstance(content, RefusedRecordError):
        raise InputFileError(f"{path}: the header of the log: {content.reason}")
    return content


def _list_at_once(text: bytes) -> list[RawSample] | None:
    """The samples of a list that is good JSON throughout, in a third of the time; None if each needs a look."""
    try:
        values = DECODER.decode(text.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        return None
    return [RawSample(b"", _with_retries(value, 0)) for value in values]


def _sample(text: bytes, retries: int = 0) -> RawSample:
    content = _parsed(text)
    return RawSample(text, content if isinstance(content, RefusedRecordError) else _with_retries(content, retries))


def _with_retries(content: dict[str, object], retries: int) -> dict[str, object]:
    if RETRIES in content:
        content["retries"] = str(retries)
    return content


def _parsed(text: bytes) -> dict[str, object] | RefusedRecordError:
    try:
        return parse_line(text.decode(), "sample")
    except UnicodeDecodeError:
        return RefusedRecordError("ragged", "it is not UTF-8")
    except RefusedRecordError as refusal:
        return refusal
