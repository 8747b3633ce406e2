"""The figures that an Inspect log reports, computed again by Inspect's own rules.

Inspect reduces the epochs of each sample to one value, leaves out samples without one, and takes a metric over the
others. An epoch without a value (an error, NaN) drops out of its sample; `pass_at_k` needs k epochs with a value.
"""

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from touchstone.ingest.adapters.inspect_ai.scores import (
    PASS_VALUE,
    ScoreName,
    is_unscored,
    reported_name,
    to_float,
)
from touchstone.ingest.adapters.lossless_json import Number
from touchstone.ingest.adapters.table import ReportedFigure

# The values of one score: for each sample, those of its epochs.
Epochs = Mapping[str, Sequence[object]]
Reducer = Callable[[Sequence[object]], float | None]

_WITH_K = re.compile(r"(pass_at|pass_k|at_least)_(\d{1,6})")
_METRICS = ("accuracy", "mean", "stderr")


def reported_figures(
    model: str,
    suite: str,
    entries: Sequence[Mapping[str, object]],
    scores: Mapping[ScoreName, Epochs],
    *,
    unreduced: bool,
) -> Iterator[ReportedFigure]:
    """One figure for every metric of every reported score. `unreduced` says that no reducer was in use."""
    for entry in entries:
        name = reported_name(entry, scores)
        reducer = entry.get("reducer")
        each_epoch = reducer is None and (unreduced or _has_reducers(entries, entry))
        epochs = scores.get(name, {})
        values = _every_epoch(epochs) if each_epoch else _reduced(epochs, str(reducer or "mean"))
        metrics = entry.get("metrics")
        for key, metric in metrics.items() if isinstance(metrics, dict) else ():
            if isinstance(metric, dict):
                label = "every epoch" if each_epoch else str(reducer or "mean")
                plain = not metric.get("params") and metric.get("group") is None
                computed = _metric(str(key), values) if plain and values is not None else None
                note = _note(label, epochs) if computed is not None else "this metric is not computed here"
                yield ReportedFigure(model, f"{name} {key} ({label})", _stated(metric), computed, suite, note)


def _has_reducers(entries: Sequence[Mapping[str, object]], entry: Mapping[str, object]) -> bool:
    """Whether the same score is reported by a named reducer, too: then this entry is over all epochs."""
    same = ("name", "scorer")
    return any(
        other.get("reducer") is not None and all(other.get(key) == entry.get(key) for key in same) for other in entries
    )


def _stated(metric: Mapping[str, object]) -> float | None:
    value = metric.get("value")
    number = float(value) if isinstance(value, Number) else math.nan
    return number if math.isfinite(number) else None


def _every_epoch(epochs: Epochs) -> list[float]:
    return [to_float(value) for values in epochs.values() for value in values if not is_unscored(value)]


def _reduced(epochs: Epochs, name: str) -> list[float] | None:
    """The value of each sample that has one; None if the reducer is not known here."""
    reduce = _reducer(name)
    if reduce is None:
        return None
    scored = ([value for value in values if not is_unscored(value)] for values in epochs.values())
    reduced = (reduce(values) for values in scored if values)
    return [value for value in reduced if value is not None]


def _reducer(name: str) -> Reducer | None:
    if match := _WITH_K.fullmatch(name):
        k = int(match[2])
        rule = {"pass_at": _pass_at, "pass_k": _pass_k, "at_least": _at_least}[match[1]]
        return lambda values: rule(len(values), sum(to_float(value) >= PASS_VALUE for value in values), k)
    simple: dict[str, Reducer] = {
        "mean": lambda values: statistics.fmean(map(to_float, values)),
        "median": lambda values: statistics.median(map(to_float, values)),
        "max": lambda values: max(map(to_float, values)),
        "mode": lambda values: to_float(Counter(map(_comparable, values)).most_common(1)[0][0]),
    }
    return simple.get(name)


def _comparable(value: object) -> object:
    """Numbers are counted as equal however they are written."""
    return Number(float(value)) if isinstance(value, Number | bool) else str(value)


def _pass_at(total: int, correct: int, k: int) -> float | None:
    return 1 - math.comb(total - correct, k) / math.comb(total, k) if total >= k else None


def _pass_k(total: int, correct: int, k: int) -> float | None:
    return math.comb(correct, k) / math.comb(total, k) if total >= k else None


def _at_least(_: int, correct: int, k: int) -> float:
    return float(correct >= k)


def _metric(name: str, values: Sequence[float]) -> float | None:
    if name not in _METRICS or not values or not all(map(math.isfinite, values)):
        return None
    if name == "stderr":
        return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.fmean(values)


def _note(label: str, epochs: Epochs) -> str | None:
    """Why pass@k of the same attempts is another figure."""
    scored = [[value for value in sample if not is_unscored(value)] for sample in epochs.values()]
    reasons = []
    if len(set(map(len, scored))) > 1 or sum(map(len, scored)) < sum(map(len, epochs.values())):
        reasons.append("attempts without a score are left out here and undecided there")
    partial = any(0 < to_float(value) < PASS_VALUE for values in scored for value in values)
    if partial and not label.startswith(("pass_", "at_least")):
        reasons.append("partial credit counts here, and only a value of at least 1 is a pass")
    if label not in ("mean", "every epoch") and not label.startswith(("pass_at", "pass_k")):
        reasons.append(f"the reducer {label} is not a share of attempts")
    return "; ".join(reasons) or None
