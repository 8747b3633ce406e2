"""The key `slices` of the configuration: columns of the problems by which figures are split."""

import math
from datetime import date
from itertools import pairwise
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from touchstone.config.file import Section

_MAX_BINS = 49
_MAX_SLICES = 20


class SliceSettings(Section):
    """One column, by its values, by bins of its numbers, or by dates before and after each model's cutoff.

    >>> SliceSettings(column="loc", bins=[0, 100]).bins
    [0.0, 100.0]
    """

    column: str = Field(min_length=1)
    bins: list[float] | None = Field(None, min_length=1, max_length=_MAX_BINS)
    cutoff: dict[str, date] | None = Field(None, min_length=1)

    @field_validator("bins")
    @classmethod
    def _ascending(cls, bins: list[float] | None) -> list[float] | None:
        if bins is not None and not all(map(math.isfinite, bins)):
            raise ValueError("bins must be finite numbers")
        if bins is not None and any(low >= high for low, high in pairwise(bins)):
            raise ValueError(f"bins must ascend, got {bins}")
        return bins

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.bins is not None and self.cutoff is not None:
            raise ValueError(f"the slice '{self.column}' has bins and a cutoff; keep one")
        return self


def listed_slices(given: Any) -> Any:
    """Slices as a list of sections: a name alone is a column, split by its values.

    >>> listed_slices(["difficulty", {"column": "loc", "bins": [100]}])[0]
    {'column': 'difficulty'}
    """
    return [{"column": one} if isinstance(one, str) else one for one in given] if isinstance(given, list) else given


def require_distinct(slices: list[SliceSettings]) -> list[SliceSettings]:
    """The slices, unless there are too many or two of one column."""
    if len(slices) > _MAX_SLICES:
        raise ValueError(f"give at most {_MAX_SLICES} slices, got {len(slices)}")
    columns = [each.column for each in slices]
    for column in columns:
        if columns.count(column) > 1:
            raise ValueError(f"the column '{column}' is listed twice; keep one")
    return slices
