"""Test reports in XML, as streams: a document of any size, of which only the open elements are in memory.

A document type declaration is refused, and with it every entity.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Head
from touchstone.ingest.adapters.table import RawReader
from touchstone.ingest.adapters.test_reports import MAX_TEXT, Case, Report
from touchstone.ingest.compressed import open_input
from touchstone.ingest.csv_rows import MAX_RAW_LENGTH, readable
from touchstone.ingest.limits import limits

_DECLARATION = r"<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
_ROOT = re.compile(rf"\A(?:<\?xml[^>]*\?>|<!--.*?-->|{_DECLARATION}|\s)*<([\w-]+)[\s>/]", re.DOTALL)
_CHUNK = 1 << 20
# Suites are nested a few levels deep. Expat keeps all names of open elements.
_MAX_DEPTH = 200


def root_of(head: Head) -> str:
    """The name of the outermost element; empty if the file is not XML."""
    found = _ROOT.match(head.text) if head.text[:1] == "<" else None
    return found[1] if found else ""


class XmlReport(Report):
    """Calls `start` and `end` for every element; they add cases to `found`."""

    roots: tuple[str, ...] = ()
    # The elements whose text `end` is given, without more than `MAX_TEXT` characters of it.
    texts: frozenset[str] = frozenset()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Case] = []
        self._count = 0
        self._depth = 0
        self._text = ""
        self._parser = expat.ParserCreate()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element starts."""

    def end(self, tag: str, text: str) -> None:
        """An element ends."""

    def begin(self, case: Case) -> Case:
        """Number a case that starts here; it is added to `found` when nothing of it can change any more."""
        self._count += 1
        case.number, case.start = self._count, self._parser.CurrentByteIndex
        return case

    def cases(self) -> Iterator[Case]:
        """Every case, as the file is read."""
        parser = self._parser
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        read = 0
        try:
            with readable(self.path), open_input(self.path) as file:
                while chunk := file.read(_CHUNK):
                    parser.Parse(chunk, False)
                    read += len(chunk)
                    if read - parser.CurrentByteIndex > limits().row_bytes:
                        raise InputFileError(f"{self.path}: an element is longer than {limits().row_mb:,} MiB")
                    yield from self.found
                    self.found.clear()
                parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise InputFileError(f"{self.path}: not whole XML ({error})") from None
        except (ValueError, LookupError) as error:  # of the encoding that it declares
            raise InputFileError(f"{self.path}: its encoding is not supported ({error}); save it as UTF-8") from None
        yield from self.found

    def _refuse_doctype(self, *_: object) -> None:
        raise InputFileError(f"{self.path}: has a document type declaration, which is refused")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise InputFileError(f"{self.path}: elements are nested more than {_MAX_DEPTH} levels deep")
        if self._depth == 1 and tag not in self.roots:
            wanted = " or ".join(f"<{root}>" for root in self.roots)
            raise InputFileError(f"{self.path}: the root is <{tag[:50]}> instead of {wanted}")
        self._text = ""
        self._parser.CharacterDataHandler = self._add_text if tag in self.texts else None
        self.start(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self.end(tag, self._text.strip() if tag in self.texts else "")

    def _add_text(self, text: str) -> None:
        if len(self._text) < MAX_TEXT:
            self._text += text[:MAX_TEXT]


def raw_elements(report: type[XmlReport]) -> RawReader:
    """Shows the text of cases from where each starts."""

    def raw(path: Path, numbers: set[int]) -> dict[int, str]:
        starts = {case.number: case.start for case in report(path).cases() if case.number in numbers}
        found = {}
        with readable(path), open_input(path) as file:
            for number, start in starts.items():
                file.seek(start)
                found[number] = file.read(MAX_RAW_LENGTH).decode("utf-8", "replace")
        return found

    return raw
