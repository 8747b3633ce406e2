"""Keys that an adapter does not map, carried as text unless they are too long for anyone to group by."""

from collections import Counter
from collections.abc import Collection, Mapping

from touchstone.ingest.adapters.json_values import unmapped_cells
from touchstone.ingest.adapters.table import Cells

# Prompts, transcripts and test inputs are longer, labels and settings shorter.
MAX_CARRIED_LENGTH = 2000


class Carried:
    """The unmapped cells of many records; counts what it leaves out."""

    def __init__(self, mapped: Collection[str], taken: Collection[str]) -> None:
        self._mapped = mapped
        self._taken = taken
        self._left_out: Counter[str] = Counter()

    def cells(self, record: Mapping[str, object]) -> Cells:
        """The short values of a record without a column of their own."""
        cells = unmapped_cells(record, self._mapped, {}, self._taken)
        long = [name for name, text in cells.items() if text is not None and len(text) > MAX_CARRIED_LENGTH]
        self._left_out.update(long)
        return {name: text for name, text in cells.items() if name not in long}

    def notes(self) -> list[str]:
        """What was left out, by name and how often."""
        return [
            f"{name}: {count:,} values with more than {MAX_CARRIED_LENGTH:,} characters were left out"
            for name, count in sorted(self._left_out.items())
        ]
