"""Trials of agents at tasks, as Terminal-Bench and Harbor record them: times, order of attempts, and several agents."""

from collections.abc import Iterable
from datetime import UTC, datetime

from touchstone.ingest.adapters.table import Record

_LATEST = datetime.max.replace(tzinfo=UTC)


def time_of(value: object) -> datetime | None:
    """An ISO 8601 time, taken as UTC without an offset; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def seconds_between(start: object, end: object) -> str | None:
    """The seconds from one time to another; None if one is unknown or the clock went back.

    >>> seconds_between("2026-05-01T09:00:00Z", "2026-05-01T09:01:30.5Z"), seconds_between("2026-05-01", None)
    ('90.5', None)
    """
    first, last = time_of(start), time_of(end)
    if first is None or last is None or last < first:
        return None
    return str((last - first).total_seconds())


def number_by_time(trials: Iterable[tuple[Record, object, str]]) -> None:
    """Number the trials of a model at a task from 1 by their start, then by name; those without a time come last."""
    counts: dict[tuple[str | None, ...], int] = {}
    for record, _, _ in sorted(trials, key=lambda trial: (time_of(trial[1]) or _LATEST, trial[2])):
        key = (record.cells["llm_name"], record.cells.get("tier"), record.cells["oid"])
        counts[key] = counts.get(key, 0) + 1
        record.cells["iteration_id"] = str(counts[key])


def separate_agents(records: Iterable[Record]) -> list[str]:
    """Make the agent the tier of a model that several agents drive, whose trials are not attempts of one system."""
    agents: dict[str | None, set[str | None]] = {}
    accepted = [record for record in records if record.kind is None]
    for record in accepted:
        agents.setdefault(record.cells["llm_name"], set()).add(record.cells.get("agent"))
    several = {model for model, names in agents.items() if len(names) > 1}
    for record in accepted:
        if record.cells["llm_name"] in several:
            record.cells["tier"] = record.cells.get("agent")
    return [f"several agents drive {model}; each is a tier" for model in sorted(filter(None, several))]
