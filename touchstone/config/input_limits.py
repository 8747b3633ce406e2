"""The section `input_limits` of the configuration: how large an input file, a row and a cell may be."""

from pydantic import Field

from touchstone.config.file import Section

_MAX_MB = 2**24
_MIB = 1 << 20


class InputLimits(Section):
    """Limits that keep one file from filling memory or disk; what exceeds them is refused, never cut.

    `file_mb` is the text of a file, after decompression. `unpack_ratio` is how many times its size a compressed file
    may unpack to; the first `unpack_free_mb` are always allowed.
    """

    file_mb: int = Field(262_144, ge=1, le=_MAX_MB)
    """MiB of text in one file, after decompression; a larger file is refused."""
    row_mb: int = Field(64, ge=1, le=2_047)
    """MiB of one row or line; a longer line of JSON is refused, a longer CSV row refuses its file."""
    cell_mb: int = Field(32, ge=1, le=2_047)
    """MiB of one cell; a row with a longer one is refused."""
    # Results repeat themselves and shrink to a fiftieth; a bomb shrinks to a thousandth or less.
    unpack_ratio: int = Field(250, ge=1, le=100_000)
    """How many times its size a compressed file or log may unpack to."""
    unpack_free_mb: int = Field(256, ge=1, le=_MAX_MB)
    """MiB that it may unpack to whatever its size."""

    @property
    def file_bytes(self) -> int:
        """The most bytes of text that are read from a file."""
        return self.file_mb * _MIB

    @property
    def row_bytes(self) -> int:
        """The longest row."""
        return self.row_mb * _MIB

    @property
    def cell_bytes(self) -> int:
        """The longest cell."""
        return self.cell_mb * _MIB

    def unpacked_bytes(self, packed: int) -> int:
        """What a compressed file of this size may unpack to.

        >>> InputLimits(unpack_ratio=100, unpack_free_mb=1).unpacked_bytes(1000)
        1148576
        """
        return self.unpack_free_mb * _MIB + self.unpack_ratio * packed
