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

import numpy as np

# The most false alarms in as many nights, over all series together; looks at one series share it evenly.
NIGHTS_PER_FALSE_ALARM = 365
# Prior degrees of freedom of the known standard error.
_PRIOR = 4
# Nights on either side of a change: a level is held for more than one, so that a single odd night is not two changes.
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

    >>> change_points([0.6, 0.62] * 5 + [0.5, 0.52], [0.02] * 12, [1e-3] * 12)
    [ChangePoint(at=10, seen=11, p_value=0.00...)]
    """
    series, known, alpha = (np.asarray(each, float) for each in (values, errors, levels))
    found: list[ChangePoint] = []
    start, looked = 0, 0
    while start < len(series):
        t, p_values = _scan(series[start:], known[start:])
        alarms = np.flatnonzero((p_values <= alpha[start:]) & (np.arange(start, len(series)) > looked))
        if not alarms.size:
            break
        seen = int(alarms[0])
        settled = min(seen + _SETTLING, len(t) - 1)
        place = int(np.abs(t[settled, : seen + 1]).argmax())
        found.append(ChangePoint(start + place, start + seen, float(p_values[seen])))
        start, looked = start + place, start + seen
    return found


def _scan(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """By last night: the t statistic of the nights from k on against those before it, for every k; and a p-value."""
    from scipy.special import stdtr  # type: ignore[import-untyped]

    centred = values - values[0]
    nights = np.arange(1, len(values) + 1)[:, None]
    before = np.arange(len(values))[None, :]
    total, squares = centred.cumsum()[:, None], (centred**2).cumsum()[:, None]
    earlier = np.concatenate([[0.0], centred.cumsum()[:-1]])[None, :]
    after = nights - before
    possible = (before >= _LEAST) & (after >= _LEAST)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = (total - earlier) / after - earlier / before
        between = difference**2 * before * after / nights
        within = np.maximum(squares - total**2 / nights - between, 0)
        known = (errors**2).cumsum()[:, None] / nights
        freedom = _PRIOR + nights - 2
        t = np.where(possible, difference / np.sqrt((_PRIOR * known + within) / freedom * nights / before / after), 0)
    largest = np.abs(t).max(axis=1)
    splits = np.maximum(nights[:, 0] - 2 * _LEAST + 1, 0)
    return t, np.where(splits > 0, np.minimum(2 * splits * stdtr(freedom[:, 0], -largest), 1), 1)
