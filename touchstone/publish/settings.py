"""The settings that a run's figures depend on, as the table `settings`: one row per key of the configuration.

Paths are left out, so the table is the same wherever the run was made. The meaning of settings belongs in `config`.
"""

import json
from collections.abc import Iterator, Sequence

import polars as pl
from pydantic import BaseModel

from touchstone.config import CheckLimits, ComparisonConfig, IntervalSettings, SliceSettings
from touchstone.config.scoring import Scoring
from touchstone.config.validation import LimitSettings


def settings(
    name: str | None,
    k_values: Sequence[int],
    problem_key: str,
    cluster_columns: Sequence[str],
    intervals: IntervalSettings,
    comparison: ComparisonConfig,
    scoring: Scoring,
    slices: Sequence[SliceSettings],
    factors: Sequence[str],
    checks: CheckLimits,
    success: str,
    test_edits: str,
    exclude_flaky: bool,
    limits: LimitSettings,
) -> pl.LazyFrame:
    """The settings that the figures depend on, and the evaluation's name. SQL macros take their weights from here."""
    values: dict[str, object] = {"name": name} if name is not None else {}
    values |= {"k_values": list(k_values), "problem_key": problem_key, "cluster_columns": list(cluster_columns)}
    values |= {"validation.success": success, "validation.test_edits": test_edits}
    values["validation.exclude_flaky"] = exclude_flaky
    values["slices"] = [each.model_dump(mode="json", exclude_none=True) for each in slices]
    values["factors"] = list(factors)
    sections = {"intervals": intervals, "comparison": comparison, "scoring": scoring, "checks": checks}
    sections["validation.limits"] = limits
    for prefix, section in sections.items():
        values |= dict(flat_settings(section, f"{prefix}."))
    rows = [(key, json.dumps(value)) for key, value in sorted(values.items())]
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
    for name in plain:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from flat_settings(value, f"{prefix}{name}.")
        else:
            yield prefix + name, plain[name]
