"""What an adapter of your own needs: see `docs/own_formats.md`. Name its file in `adapters` in the configuration."""

from touchstone.config.formats import JsonFormat
from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions
from touchstone.ingest.adapters.json_files import (
    line_records,
    number_of,
    numbered_lines,
    object_records,
    raw_lines,
    raw_values,
    read_document,
    read_text,
    text_of,
)
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    Record,
    RefusedRecordError,
    ReportedFigure,
    StatedSetting,
    fill_records,
    number_attempts,
    table_from_records,
)

__all__ = [
    "Adapter",
    "AdapterTable",
    "Cells",
    "Head",
    "InputFileError",
    "JsonFormat",
    "ReadOptions",
    "Record",
    "RefusedRecordError",
    "ReportedFigure",
    "StatedSetting",
    "fill_records",
    "line_records",
    "mapped_adapter",
    "number_attempts",
    "number_of",
    "numbered_lines",
    "object_records",
    "raw_lines",
    "raw_values",
    "read_document",
    "read_text",
    "table_from_records",
    "text_of",
]
