"""The limits on input files, in one place: those of the configuration in use, and those of single formats.

An evaluation sets its limits before it reads (`use_limits`), for the whole process: readers are called from many
places, and Polars calls some of them back on threads of its own.
"""

from pathlib import Path

from touchstone.config import InputLimits
from touchstone.errors import InputFileError

# Why a row is refused that exceeds a limit.
TOO_LARGE = "too_large"

# Tables, views and checks take longer than in proportion to the number of columns.
MAX_COLUMNS = 10_000
# Columns of a table whose records have names of their own, as in JSON.
MAX_KEYS = 1000

# Parquet: ten times the largest evaluation that was ever tried.
PARQUET_ROWS = 1_000_000_000
# A row group is decoded at once: this many rows of it, or bytes before compression.
PARQUET_GROUP_ROWS = 20_000_000
PARQUET_GROUP_BYTES = 4 << 30
PARQUET_FOOTER_BYTES = 64 << 20
# A run of equal values takes a few bytes however long it is, so cells per byte of the file are limited, too.
PARQUET_FREE_CELLS = 20_000_000
PARQUET_CELLS_PER_BYTE = 1_000
# A text that stands in a dictionary once may be used in every row, so the text in all is limited in the same way.
PARQUET_FREE_TEXT = 1 << 30
PARQUET_TEXT_PER_BYTE = 1_000

# ZIP: 600,000 members with names of 60 characters; the directory is the only part that is kept in memory.
ZIP_DIRECTORY_BYTES = 64 << 20
ZIP_MEMBER_BYTES = 4 << 30

_in_use = InputLimits()


def use_limits(limits: InputLimits) -> None:
    """Set the limits for everything that this process reads from now on."""
    global _in_use
    _in_use = limits


def limits() -> InputLimits:
    """The limits in use."""
    return _in_use


def require_file_size(path: Path, size: int) -> None:
    """Refuse a file whose text is longer than `file_mb`."""
    if size > _in_use.file_bytes:
        raise InputFileError(
            f"{path}: more than {_in_use.file_mb:,} MiB of text; split it, or raise input_limits.file_mb in the config"
        )


def too_much_unpacked(path: Path) -> InputFileError:
    """The error of a compressed file that unpacks to more than it may."""
    return InputFileError(
        f"{path}: unpacks to over {_in_use.unpack_ratio} times its size; not read "
        "(if it is not a decompression bomb, raise input_limits.unpack_ratio in the config)"
    )


def too_long(what: str, mb: int, setting: str) -> str:
    """Why a row or a cell is refused.

    >>> too_long("the row", 64, "row_mb")
    'the row is longer than 64 MiB; shorten it, or raise input_limits.row_mb in the config'
    """
    return f"{what} is longer than {mb:,} MiB; shorten it, or raise input_limits.{setting} in the config"
