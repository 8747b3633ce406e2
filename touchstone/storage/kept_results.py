"""Rows that the function of a table keeps in the draft, so that the next run need not compute all of them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from touchstone.storage.files import replacing

if TYPE_CHECKING:
    import polars as pl

_VERSION = "version"


@dataclass(frozen=True)
class KeptResults:
    """A file of such rows. `version` identifies the code that they are valid for."""

    path: Path
    version: str

    def read(self) -> "pl.DataFrame | None":
        """The rows of the last run; None if there are none, other code wrote them, or the file is damaged."""
        import polars as pl

        try:
            if pl.read_parquet_metadata(self.path).get(_VERSION) != self.version:
                return None
            return pl.read_parquet(self.path, glob=False)
        except (OSError, pl.exceptions.PolarsError):
            return None

    def write(self, rows: "pl.DataFrame") -> None:
        """Replace the rows."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as scratch:
            rows.write_parquet(scratch, compression_level=1, statistics=False, metadata={_VERSION: self.version})
