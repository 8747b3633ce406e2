"""By what the outcomes of an evaluation were decided, and whether two evaluations differ in it.

A figure that changed with the validator, its version, its fidelity or its sandbox may say nothing about the model.
"""

from collections.abc import Mapping, Sequence

import polars as pl

GROUP = ("model", "tier")
DETAILS = ("validator", "validator_version", "fidelity", "sandbox")
SCHEMA = pl.Schema(dict.fromkeys([*GROUP, *DETAILS], pl.String))

_MOST_NAMED = 3


def validators_used(outcomes: pl.LazyFrame) -> pl.DataFrame:
    """Per model and tier, every validator with version, fidelity and sandbox that decided an attempt."""
    decided = outcomes.filter(pl.col("passed").is_not_null())
    return decided.select(list(SCHEMA)).unique().sort(list(SCHEMA)).collect()


def recorded_validators(attempt_scores: pl.DataFrame) -> pl.DataFrame:
    """The same for outcomes that a file brought itself."""
    groups = attempt_scores.filter(pl.col("pass_rate").is_not_null()).select(GROUP).unique().sort(GROUP)
    recorded = {"validator": pl.lit("recorded"), "fidelity": pl.lit("recorded")}
    return groups.with_columns(**{name: pl.lit(None, pl.String) for name in DETAILS} | recorded)


def frozen_validators(rows: Sequence[Mapping[str, str | None]]) -> pl.DataFrame:
    """What a snapshot's manifest recorded."""
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def validation_differences(
    before: pl.DataFrame | None, after: pl.DataFrame | None, current: str = "current"
) -> list[str]:
    """A line per kind of difference, over the models and tiers that both sides have; none where a side is unknown.

    >>> sides = [pl.DataFrame({"model": "m", "tier": "T0", "validator": name, "validator_version": version,
    ...     "fidelity": fidelity, "sandbox": sandbox}) for name, version, fidelity, sandbox in
    ...     (("hcl", "1", "static", None), ("terraform", "1.9", "full", "bubblewrap"))]
    >>> validation_differences(*sides)
    ['validated differently: baseline by hcl 1 (static), current by terraform 1.9 (full, bubblewrap)']
    """
    if before is None or after is None:
        return []
    old, new = _by_group(before), _by_group(after)
    both = sorted(old.keys() & new.keys())
    found: dict[tuple[str, str], list[str]] = {}
    for group in both:
        if old[group] != new[group]:
            found.setdefault((_told(old[group]), _told(new[group])), []).append(" ".join(group))
    return [
        f"validated differently: baseline by {was}, {current} by {now}" + _named(names, len(both))
        for (was, now), names in found.items()
    ]


def _by_group(rows: pl.DataFrame) -> dict[tuple[str, str], set[tuple[str | None, ...]]]:
    grouped: dict[tuple[str, str], set[tuple[str | None, ...]]] = {}
    for model, tier, *details in rows.select(list(SCHEMA)).iter_rows():
        grouped.setdefault((model, tier), set()).add(tuple(details))
    return grouped


def _told(validators: set[tuple[str | None, ...]]) -> str:
    return " and ".join(sorted(_one(*details) for details in validators))


def _one(validator: str | None, version: str | None, fidelity: str | None, sandbox: str | None) -> str:
    if validator == "recorded":
        return "recorded outcomes"
    name = " ".join(part for part in (validator, version) if part)
    details = ", ".join(part for part in (fidelity, sandbox) if part)
    return f"{name} ({details})" if details else name


def _named(groups: Sequence[str], of: int) -> str:
    if len(groups) == of:
        return ""
    more = f" and {len(groups) - _MOST_NAMED:,} more" if len(groups) > _MOST_NAMED else ""
    return f" ({', '.join(groups[:_MOST_NAMED])}{more})"
