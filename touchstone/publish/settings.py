"""The settings that a run's figures depend on, as the table `settings`: one row per key of the configuration.

Paths are left out, so the table is the same wherever the run was made. What a setting means belongs in `config`.
"""

import json
from collections.abc import Iterator

import polars as pl
from pydantic import BaseModel

from touchstone.config import EvaluationConfig, Scoring

_KEYS = ("k_values", "problem_key", "intervals", "comparison", "scoring", "checks")


def settings_table(config: EvaluationConfig) -> pl.LazyFrame:
    """Every setting by its dotted key, its value as JSON."""
    rows = [(key, json.dumps(value)) for key, value in sorted(flat_settings(config)) if key.split(".")[0] in _KEYS]
    return pl.LazyFrame(rows, schema={"key": pl.String, "value": pl.String}, orient="row")


def scoring_settings(scoring: Scoring) -> dict[str, object]:
    """The settings of the scores by their dotted keys.

    >>> scoring_settings(Scoring())["scoring.code.tests"]
    0.5
    """
    return dict(flat_settings(scoring, "scoring."))


def flat_settings(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, object]]:
    """The fields of a section and of the sections in it; a mapping is one value."""
    plain = section.model_dump(mode="json")
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from flat_settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, plain[name]
