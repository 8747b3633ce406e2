"""The headline figures night by night, from the table `history`, and the nights on which the level of one changed.

A night is a snapshot. Nights on which the files of a model are those of the night before are one observation: their
figures do not vary. If such a figure changes all the same, by more than its standard error, nothing random did it, and
that is a change point without a test.

Change points are tested on the night each could first be seen. Every night, the nights since the last change point are
split in two at each place; the largest t statistic of the two means says whether, and where, the level changed: the
change-point model for statistical process control of Hawkins, Qiu and Kang (2003), J. Quality Technology 35:355. Its
p-value is bounded by the number of splits times that of one (Worsley 1979, JASA 74:365), which needs no simulation.
Nights have known standard errors, but these include the choice of problems, which nights share, so the variance is
estimated from the nights, moderated by the known one with a few prior degrees of freedom (Smyth 2004, SAGMB 3:3): a
short or constant series raises no alarm for being constant.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl

from touchstone.storage.snapshots import Snapshot, pin_names
from touchstone.tables import TABLES
from touchstone.trends.causes import causes, describe_causes
from touchstone.trends.figures import HEADLINES, MAIN_FIGURE, figure_name, figure_rows

# A pause is a gap if it is longer than this many times the usual one.
_GAP = 2
_SERIES = ["table", "model", "tier", "item"]
_TIME = "%Y-%m-%dT%H:%M:%SZ"

Row = dict[str, Any]
# The most false alarms in as many nights, over all series together; looks at one series share it evenly.
NIGHTS_PER_FALSE_ALARM = 365
# Prior degrees of freedom of the known standard error.
_PRIOR = 4
# Nights on either side of a change: one odd night is less often taken for two changes, and heavy tails matter less.
_LEAST = 2
# Nights after the alarm that still move the estimated place of the change.
_SETTLING = 10

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Trends:
    """The tables `trends` and `change_points`."""

    trends: pl.DataFrame
    change_points: pl.DataFrame


def find_trends(history: pl.LazyFrame, snapshots: Sequence[Snapshot], pins: Mapping[str, str]) -> Trends:
    """The lines of all headline figures and their change points; `snapshots` are those of the table `history`."""
    rows = pl.concat([figure_rows(history, table, MAIN_FIGURE[table]).drop("noun") for table in HEADLINES])
    rows = _without_doubles(rows).filter(pl.col("value").is_not_null().any().over(_SERIES))
    rows = rows.sort(*_SERIES, "made_at", "snapshot")
    known = {snapshot.id: snapshot for snapshot in snapshots}
    pinned_as = {snapshot: ", ".join(names) for snapshot, names in pin_names(pins).items()}
    rows = _with_gaps(rows, list(known)).with_columns(
        same_attempts=_same_attempts(rows, known),
        pinned_as=pl.col("snapshot").replace_strict(pinned_as, default=None, return_dtype=pl.String),
        error=(pl.col("ci_high") - pl.col("ci_low"))
        / pl.col("snapshot").replace_strict(_widths(snapshots), default=None),
    )
    tested = pl.col("value").is_finite() & pl.col("error").is_finite() & (pl.col("error") > 0)
    rows = rows.with_columns(tested=tested.fill_null(False))
    # The series of one night share its false alarms.
    rows = rows.with_columns(alpha=1 / NIGHTS_PER_FALSE_ALARM / pl.col("tested").sum().over("snapshot"))
    levels: list[float | None] = []
    changes = []
    for series in rows.partition_by(_SERIES, maintain_order=True):
        nights = series.to_dicts()
        starts = _starts(nights)
        own = _levels(nights, [0, *(start for start, *_ in starts)])
        levels += own
        changes += list(_describe(nights, starts, own, known))
    trends = rows.with_columns(level=pl.Series(levels, dtype=pl.Float64)).select(TABLES["trends"].dtypes.names())
    return Trends(
        trends.sort("made_at", "snapshot", pl.col("table").cast(pl.Enum(HEADLINES)), *_SERIES),
        pl.DataFrame(changes, schema=TABLES["change_points"].dtypes).sort("made_at", *_SERIES),
    )


def _without_doubles(rows: pl.DataFrame) -> pl.DataFrame:
    """Without overall scores that are pass@1, as they are with one suite and no classes: one line and one alarm."""
    first = rows.filter(pl.col("table") == "pass_at_k", pl.col("item") == "1")
    keys = ["snapshot", "model", "tier"]
    paired = rows.join(first.select(*keys, pass_at_1="value"), on=keys, how="left", maintain_order="left")
    same = ((pl.col("value") - pl.col("pass_at_1")).abs() < 1e-9).fill_null(False).all().over(_SERIES)
    return paired.filter((pl.col("table") != "run_scores") | ~same).drop("pass_at_1")


def _with_gaps(rows: pl.DataFrame, snapshots: Sequence[str]) -> pl.DataFrame:
    """Rows with `after_gap`: the pause before is long, or snapshots before it lack the model."""
    place = pl.col("snapshot").replace_strict({each: nth for nth, each in enumerate(snapshots)}, default=None)
    seconds = pl.col("made_at").str.to_datetime(_TIME, strict=False).dt.epoch("s")
    times = rows.select("snapshot", seconds=seconds).unique().sort("seconds")["seconds"]
    usual = times.diff().median()
    long = seconds.diff().over(_SERIES) > _GAP * usual if isinstance(usual, int | float) else pl.lit(False)
    return rows.with_columns(after_gap=(long | (place.diff().over(_SERIES) > 1)).fill_null(False))


def _same_attempts(rows: pl.DataFrame, snapshots: Mapping[str, Snapshot]) -> pl.Series:
    """Whether the files of the model are those of the row before; null if a manifest does not say."""
    digests = [
        snapshots[snapshot].attempts.get(model) if snapshot in snapshots else None
        for snapshot, model in rows.select("snapshot", "model").iter_rows()
    ]
    digest = pl.col("digest")
    return rows.with_columns(digest=pl.Series(digests, dtype=pl.String)).select(
        same_attempts=digest == digest.shift().over(_SERIES)
    )["same_attempts"]


def _widths(snapshots: Sequence[Snapshot]) -> dict[str, float]:
    """How many standard errors wide the intervals of each snapshot are."""
    stated = {each.id: json.loads(each.settings.get("intervals.confidence", "0.95")) for each in snapshots}
    return {snapshot: 2 * NormalDist().inv_cdf(0.5 + confidence / 2) for snapshot, confidence in stated.items()}


def _starts(nights: Sequence[Row]) -> list[tuple[int, int, float]]:
    """The changes of level in a series, by row: the first night, the night it was seen, and the p-value."""
    tested = [row for row, night in enumerate(nights) if night["tested"]]
    found: list[tuple[int, int, float]] = []
    stretch: list[int] = tested[:1]
    for before, row in pairwise(tested):
        if not _is_repeated(nights[before], nights[row]):
            stretch.append(row)
        elif abs(nights[row]["value"] - nights[before]["value"]) > nights[row]["error"]:
            found += [*_tested_changes(nights, stretch), (row, row, 0.0)]
            stretch = [row]
    return [*found, *_tested_changes(nights, stretch)]


def _is_repeated(before: Row, night: Row) -> bool:
    """Whether the attempts are those of the night before. If that is not known, equal figures are taken to say so."""
    if night["same_attempts"] is not None:
        return bool(night["same_attempts"])
    return all(before[name] == night[name] for name in ("value", "ci_low", "ci_high", "n"))


def _tested_changes(nights: Sequence[Row], rows: Sequence[int]) -> Iterator[tuple[int, int, float]]:
    values, errors, levels = ([nights[row][name] for row in rows] for name in ("value", "error", "alpha"))
    for change in change_points(values, errors, levels):
        yield rows[change.at], rows[change.seen], change.p_value


def _levels(nights: Sequence[Row], starts: Sequence[int]) -> list[float | None]:
    """For each night the mean over the nights of its level; null if none is finite."""
    levels: list[float | None] = []
    for start, end in pairwise([*starts, len(nights)]):
        values = [night["value"] for night in nights[start:end]]
        finite = [value for value in values if value is not None and math.isfinite(value)]
        levels += [math.fsum(finite) / len(finite) if finite else None] * (end - start)
    return levels


def _describe(
    nights: Sequence[Row],
    starts: Sequence[tuple[int, int, float]],
    levels: Sequence[float | None],
    snapshots: Mapping[str, Snapshot],
) -> Iterator[Row]:
    """The rows of `change_points`."""
    edges = [0, *(start for start, *_ in starts), len(nights)]
    for (first, seen, p_value), start, end in zip(starts, edges[:-2], edges[2:], strict=True):
        night, last = nights[first], nights[first - 1]
        before, after = levels[first - 1], levels[first]
        if before is None or after is None:
            continue
        both = [snapshots.get(each["snapshot"]) for each in (last, night)]
        found = causes(both[0], both[1], night["model"]) if both[0] and both[1] else []
        yield {
            **{name: night[name] for name in (*_SERIES, "figure", "snapshot", "made_at", "same_attempts")},
            "previous_snapshot": last["snapshot"],
            "previous_made_at": last["made_at"],
            "before": before,
            "after": after,
            "difference": after - before,
            "nights_before": first - start,
            "nights_after": end - first,
            "seen_in": nights[seen]["snapshot"],
            "p_value": p_value,
            "changed": describe_causes(found, night["same_attempts"] is False),
            "sentence": change_sentence(night["table"], night["figure"], night["item"], before, after),
        }


def change_sentence(table: str, figure: str, item: str, before: float, after: float) -> str:
    """A change of level in words.

    >>> change_sentence("pass_at_k", "pass_at_k", "1", 0.62, 0.54)
    'pass@1 fell by 8.0 points, from 62.0% to 54.0%'
    """
    word, name = "fell" if after < before else "rose", figure_name(table, figure, item)
    if table == "economics":
        return f"{name} {word} from ${before:.4g} to ${after:.4g}"
    return f"{name} {word} by {100 * abs(after - before):.1f} points, from {before:.1%} to {after:.1%}"


# Change points


@dataclass(frozen=True)
class ChangePoint:
    """The level changed before night `at`, which was first seen on night `seen`."""

    at: int
    seen: int
    p_value: float


def change_points(values: Sequence[float], errors: Sequence[float], levels: Sequence[float]) -> list[ChangePoint]:
    """The changes in a series of independent nights with their standard errors; `levels` are those of the tests.

    >>> found = change_points([0.6, 0.62] * 5 + [0.5, 0.52], [0.02] * 12, [1e-3] * 12)
    >>> [(change.at, change.seen) for change in found]
    [(10, 11)]
    """
    series, known, alpha = (np.asarray(each, float) for each in (values, errors, levels))
    found: list[ChangePoint] = []
    start, looked = 0, 0
    while len(series) - start >= 2 * _LEAST:
        between, p_values = _scan(series[start:], known[start:])
        alarms = np.flatnonzero((p_values <= alpha[start:]) & (np.arange(start, len(series)) > looked))
        if not alarms.size:
            break
        seen = int(alarms[0])
        settled = min(seen + _SETTLING, len(between) - 1)
        place = int(between[settled, : seen + 1].argmax())
        found.append(ChangePoint(start + place, start + seen, float(p_values[seen])))
        start, looked = start + place, start + seen
    return found


def _scan(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """By last night: the sum of squares between the nights before and from k on, for every k; and a p-value."""
    from scipy.special import stdtr  # type: ignore[import-untyped]

    nights = np.arange(1, len(values) + 1)
    centred = values - values[0]
    sums, squares = centred.cumsum(), (centred**2).cumsum()
    earlier = np.concatenate([[0.0], sums[:-1]])
    weights = _weights(1 << len(values).bit_length())[: len(values), : len(values)]
    between = (earlier - np.outer(sums / nights, nights - 1)) ** 2 * weights
    largest = between.max(axis=1)
    within = np.maximum(squares - sums**2 / nights - largest, 0)
    known, freedom = (errors**2).cumsum() / nights, _PRIOR + nights - 2
    t = np.sqrt(largest * freedom / (_PRIOR * known + within))
    splits = np.maximum(nights - 2 * _LEAST + 1, 0)
    return between, np.where(splits > 0, np.minimum(2 * splits * stdtr(freedom, -t), 1), 1)


@cache
def _weights(length: int) -> Floats:
    """n / (k (n - k)) by last night n and first night k of the second part; 0 where a part would be too short."""
    nights, before = np.arange(1, length + 1)[:, None], np.arange(length)[None, :]
    possible = (before >= _LEAST) & (nights - before >= _LEAST)
    return np.where(possible, nights / np.where(possible, before * (nights - before), 1), 0)
