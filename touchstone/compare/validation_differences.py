"""How two evaluations differ in what validated them.

A change of validator, version, fidelity or sandbox can change a figure without any change in the model.
"""

from collections.abc import Sequence

import polars as pl

from touchstone.validation.validators_used import SCHEMA

_MOST_NAMED = 3


def validation_differences(
    before: pl.DataFrame | None, after: pl.DataFrame | None, current: str = "current"
) -> list[str]:
    """One line per distinct difference, for models and tiers in both evaluations; none if validators are unknown.

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
            found.setdefault((_describe(old[group]), _describe(new[group])), []).append(" ".join(group))
    return [
        f"validated differently: baseline by {was}, {current} by {now}" + _affected(names, len(both))
        for (was, now), names in found.items()
    ]


def _by_group(rows: pl.DataFrame) -> dict[tuple[str, str], set[tuple[str | None, ...]]]:
    grouped: dict[tuple[str, str], set[tuple[str | None, ...]]] = {}
    for model, tier, *details in rows.select(list(SCHEMA)).iter_rows():
        grouped.setdefault((model, tier), set()).add(tuple(details))
    return grouped


def _describe(validators: set[tuple[str | None, ...]]) -> str:
    return " and ".join(sorted(_describe_validator(*details) for details in validators))


def _describe_validator(validator: str | None, version: str | None, fidelity: str | None, sandbox: str | None) -> str:
    if validator == "recorded":
        return "recorded outcomes"
    name = " ".join(part for part in (validator, version) if part)
    details = ", ".join(part for part in (fidelity, sandbox) if part)
    return f"{name} ({details})" if details else name


def _affected(groups: Sequence[str], of: int) -> str:
    if len(groups) == of:
        return ""
    more = f" and {len(groups) - _MOST_NAMED:,} more" if len(groups) > _MOST_NAMED else ""
    return f" ({', '.join(groups[:_MOST_NAMED])}{more})"
