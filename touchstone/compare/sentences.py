"""The sentence that reports a comparison of two models. Rates and differences are in percentage points.

A run writes one for each of thousands of pairs, so texts are made column by column: a number is formatted once, and
what many pairs have in common is not formatted again.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from touchstone.compare.verdicts import PairResult, describe_shortage, is_clustered
from touchstone.text import counted

Texts = list[str | None]


def sentence(result: PairResult, name_a: str, name_b: str) -> str:
    """The result in one line.

    >>> result = PairResult(40, 0, 0, difference=-0.121, ci_low=-0.203, ci_high=-0.04, p_value=0.0015, p_adjusted=0.004,
    ...                     pairs=3, adjusted_ci_low=-0.222, adjusted_ci_high=-0.021, verdict="worse")
    >>> print(sentence(result, "atlas", "cedar").replace("; ", ";\\n"))
    cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.002;
    adjusted for 3 pairs: 95% CI 2.1 to 22.2, p = 0.004;
    40 problems)
    """
    if result.same_attempts and None not in (result.difference, result.ci_low, result.ci_high):
        return f"every attempt ended as in {_the(name_a)} ({_counted(result.problems, 'problem')})"
    [text] = sentences({name: [value] for name, value in vars(result).items()}, [name_a], [name_b])
    return text


def sentences(columns: Mapping[str, Sequence[Any]], names_a: Sequence[str], names_b: Sequence[str]) -> Iterator[str]:
    """The same of many results, given as columns with the names of `PairResult`; undefined is None."""
    differences = _points(columns["difference"])
    evidence = _evidence(columns)
    powers = zip(
        _points(columns["minimum_detectable_effect"]),
        *(columns[name] for name in ("units", "units_needed", "pairs", "alpha", "method")),
        strict=True,
    )
    rows = zip(names_a, names_b, columns["verdict"], differences, evidence, powers, columns["relevant"], strict=True)
    for a, b, verdict, difference, seen, power, relevant in rows:
        if difference is None or seen is None:
            yield f"{b} and {a} cannot be compared: no problem was decided for both"
        elif verdict in ("better", "worse"):
            yield f"{b} is {verdict} than {a} by {difference.removeprefix('-')} points ({seen})"
        else:
            signed = difference if difference[0] == "-" or difference == "0.0" else f"+{difference}"
            yield _undecided(verdict, a, b, f"difference {signed} points ({seen})", power, relevant)


def _undecided(verdict: str, a: str, b: str, seen: str, power: tuple[Any, ...], relevant: float) -> str:
    """The sentence for a pair without a significant difference."""
    if verdict == "no relevant difference":
        return f"no relevant difference between {b} and {a}: {seen}, within {_margin(relevant)} points either way"
    effect, units, needed, pairs, alpha, method = power
    if verdict == "underpowered":
        start = f"too little data to tell {b} from {a}: {seen}"
        if needed is not None:
            return (
                f"{start}; {describe_shortage(units, needed, pairs=pairs, alpha=alpha, clustered=is_clustered(method))}"
            )
    else:
        start = f"no evidence that {b} differs from {a}: {seen}"
    if effect is None:
        return f"{start}; no difference is sure enough to be found, however large"
    return f"{start}; minimum detectable effect {_whole(effect)} points"


def _evidence(columns: Mapping[str, Sequence[Any]]) -> Iterator[str | None]:
    """Intervals, p-values and the number of problems; None for a pair without an interval."""
    verdicts, pairs = columns["verdict"], columns["pairs"]
    own = _intervals(columns["ci_low"], columns["ci_high"], columns["confidence"], verdicts)
    levels = [1 - alpha for alpha in columns["alpha"]]
    adjusted = _intervals(columns["adjusted_ci_low"], columns["adjusted_ci_high"], levels, verdicts)
    chances, adjusted_chances = map(_chance, columns["p_value"]), map(_chance, columns["p_adjusted"])
    families = map(_family, pairs, columns["correction"])
    based_on = map(_data, columns["problems"], columns["units"], columns["method"])
    for interval, chance, family, together, adjusted_chance, data in zip(
        own, chances, families, adjusted, adjusted_chances, based_on, strict=True
    ):
        if interval is None:
            yield None
        elif family is None:
            yield f"{interval}, {chance}, {data}"
        else:
            yield f"{interval}, {chance}; {family}: {together or 'no CI'}, {adjusted_chance}; {data}"


def _intervals(
    low: Sequence[Any], high: Sequence[Any], confidence: Sequence[float], verdicts: Sequence[str]
) -> Iterator[str | None]:
    """Each interval as text; for a worse model that of how much worse it is."""
    for least, most, level, verdict in zip(_points(low), _points(high), confidence, verdicts, strict=True):
        if least is None or most is None:
            yield None
        elif verdict == "worse":
            yield f"{_percent(level)} CI {_negated(most)} to {_negated(least)}"
        else:
            yield f"{_percent(level)} CI {least} to {most}"


@lru_cache
def _margin(relevant: float) -> str:
    return _whole(*filter(None, _points([relevant])))


@lru_cache
def _percent(confidence: float) -> str:
    return f"{100 * confidence:g}%"


@lru_cache
def _family(pairs: int, correction: str) -> str | None:
    """What a p-value is adjusted for; None if it is not."""
    rate = ", false discovery rate" if correction != "holm" else ""
    return f"adjusted for {pairs:,} pairs{rate}" if pairs > 1 else None


@lru_cache(maxsize=4096)
def _data(problems: int, units: int, method: str | None) -> str:
    clusters = f" in {counted(units, 'cluster')}" if is_clustered(method) else ""
    return f"{_counted(problems, 'problem')}{clusters}"


_counted = lru_cache(counted)


def _chance(p: float | None) -> str:
    return "no p" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _points(differences: Sequence[float | None]) -> Texts:
    """Each number in percentage points, with one digit; one call formats all of them.

    >>> _points([0.1234, None, -0.0001])
    ['12.3', None, '0.0']
    """
    known = [100 * number for number in differences if number is not None]
    texts = iter(("%.1f\n" * len(known) % tuple(known)).split("\n"))
    return [None if number is None else _unsigned_zero(next(texts)) for number in differences]


def _unsigned_zero(text: str) -> str:
    return "0.0" if text == "-0.0" else text


def _negated(text: str) -> str:
    return text[1:] if text[0] == "-" else text if text == "0.0" else f"-{text}"


def _whole(text: str) -> str:
    """Without the digit after the point if it is 0."""
    return text.removesuffix(".0")


def _the(name: str) -> str:
    """A baseline by its role with its article; any other by its name."""
    return "the baseline" if name == "baseline" else name
