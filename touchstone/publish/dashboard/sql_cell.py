"""SQL over the run that is shown: the same gate and the same separate process as `touchstone sql`, with less time."""

import polars as pl
import pyarrow as pa

from touchstone.publish.dashboard.run_tables import RunTables
from touchstone.publish.query import QueryLimits, run_query
from touchstone.publish.result_formats import terminal_cells

LIMITS = QueryLimits(memory=2**30, seconds=30.0)


def run_sql(run: RunTables, sql: str) -> pa.Table:
    """The result of one SELECT; a TouchstoneError of one line if it is refused, too slow or too large."""
    return run_query(run.tables, sql, limits=LIMITS)


def shown_rows(result: pa.Table) -> pl.DataFrame:
    """The result as a frame to show; as text if it has columns that are neither numbers, text, truths nor times."""
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    times = (pa.types.is_date, pa.types.is_timestamp)
    if all(any(is_kind(field.type) for is_kind in (*plain, *times)) for field in result.schema):
        frame = pl.from_arrow(result)
        assert isinstance(frame, pl.DataFrame)
        return frame
    columns, rows, _ = terminal_cells(result, result.num_rows)
    return pl.DataFrame(rows, schema=[name for name, _ in columns], orient="row")
