"""Several models or problems at once: as many as fit into a bounded amount of memory, and the rows of each model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# A million rows of some twenty columns take a few hundred megabytes while they are worked on.
MAX_ROWS = 1_000_000
# Each model of a batch is a file that is written at the same time.
_MAX_MODELS = 100


def batches(rows: Mapping[str, int], limit: int = MAX_ROWS) -> Iterator[list[str]]:
    """The models in order, in batches of at most `limit` rows; a larger model is a batch of its own.

    >>> list(batches({"a": 2, "b": 2, "c": 9, "d": 1}, limit=4))
    [['a', 'b'], ['c'], ['d']]
    """
    batch: list[str] = []
    total = 0
    for model, count in rows.items():
        if batch and (total + count > limit or len(batch) == _MAX_MODELS):
            yield batch
            batch, total = [], 0
        batch.append(model)
        total += count
    if batch:
        yield batch


def by_key(rows: int, key: Sequence[str], limit: int = MAX_ROWS) -> "list[pl.Expr]":
    """Conditions that split so many rows into parts of about `limit`, with the rows of a key in one part.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"oid": ["a", "b", "a", "c"]})
    >>> sorted(oid for part in by_key(4, ["oid"], limit=2) for oid in rows.filter(part)["oid"])
    ['a', 'a', 'b', 'c']
    """
    import polars as pl

    parts = 1 + rows // limit
    return [pl.struct(key).hash() % parts == part for part in range(parts)]


def first_and_last(batch: Sequence[str]) -> str:
    """The models of a batch in a few words.

    >>> first_and_last(["a"]), first_and_last(["a", "b", "c"])
    ('a', 'a to c')
    """
    return batch[0] if len(batch) == 1 else f"{batch[0]} to {batch[-1]}"


def block_sizes(models: "pl.Series") -> dict[str, int]:
    """The number of rows of each model; an error if those of one model are not all together.

    >>> import polars as pl
    >>> block_sizes(pl.Series(["b", "b", "a"]))
    {'b': 2, 'a': 1}
    """
    runs = models.rle().struct.unnest()
    if runs["value"].n_unique() != runs.height:
        raise ValueError("the rows of a model are not all together")
    return dict(zip(runs["value"], runs["len"], strict=True))


def blocks(frame: "pl.DataFrame", models: Iterable[str]) -> "dict[str, pl.DataFrame]":
    """The rows of each model, without copying them; an error if there are rows of another one."""
    rows = dict.fromkeys(models, frame.clear())
    start = 0
    for model, length in block_sizes(frame["model"]).items():
        if model not in rows:
            raise ValueError(f"rows of a model that was not asked for: {model}")
        rows[model] = frame.slice(start, length)
        start += length
    return rows
