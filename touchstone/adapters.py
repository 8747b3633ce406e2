"""The interface for adapters of your own: see `docs/own_formats.md`. The configuration names their files."""

from touchstone.config.formats import JsonFormat as JsonFormat
from touchstone.errors import InputFileError as InputFileError
from touchstone.ingest.adapters.adapter import Adapter as Adapter
from touchstone.ingest.adapters.adapter import Head as Head
from touchstone.ingest.adapters.adapter import ReadOptions as ReadOptions
from touchstone.ingest.adapters.json_files import line_records as line_records
from touchstone.ingest.adapters.json_files import numbered_lines as numbered_lines
from touchstone.ingest.adapters.json_files import raw_lines as raw_lines
from touchstone.ingest.adapters.json_files import raw_values as raw_values
from touchstone.ingest.adapters.json_files import read_document as read_document
from touchstone.ingest.adapters.json_files import read_text as read_text
from touchstone.ingest.adapters.mapping import mapped_adapter as mapped_adapter
from touchstone.ingest.adapters.table import AdapterTable as AdapterTable
from touchstone.ingest.adapters.table import RefusedRecordError as RefusedRecordError
from touchstone.ingest.adapters.table import ReportedFigure as ReportedFigure
from touchstone.ingest.adapters.table import fill_records as fill_records
from touchstone.ingest.adapters.table import table_from_records as table_from_records
