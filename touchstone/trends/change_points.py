"""Change points in a series of nightly figures, each tested on the night it could first be seen.

Every night, the nights since the last change point are split in two at each place; the largest t statistic of the two
means says whether, and where, the level changed: the change-point model for statistical process control of Hawkins,
Qiu and Kang (2003), J. Quality Technology 35:355. Its p-value is bounded by the number of splits times that of one
(Worsley 1979, JASA 74:365), which needs no simulation. Nights have known standard errors, but these include the choice
of problems, which nights share, so the variance is estimated from the nights, moderated by the known one with a few
prior degrees of freedom (Smyth 2004, SAGMB 3:3): a short or constant series raises no alarm for being constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

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
