"""What the comparison of a pair found, what may be said of it, and how it is said to people."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PairResult:
    """Side b against side a. Undefined is null; without a problem decided on both sides everything is.

    `difference` is the mean over problems of pass@1 of b minus that of a. `wins`, `losses` and `ties` count the
    problems where b's rate is higher, lower and equal. `effect_size` is the standardised paired difference: the
    mean difference over the standard deviation of the problems' differences (Cohen's d_z). The minimum detectable
    effect is for a level of alpha / `pairs`, and `p_adjusted` is `p_value` where the pair is the only one.
    `same_attempts` is set by whoever knows that attempt by attempt both sides ended alike.
    """

    problems: int
    problems_only_a: int
    problems_only_b: int
    rate_a: float | None = None
    rate_b: float | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    method: str | None = None
    units: int = 0
    confidence: float = 0.95
    test: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    pairs: int = 1
    wins: int = 0
    losses: int = 0
    ties: int = 0
    effect_size: float | None = None
    minimum_detectable_effect: float | None = None
    detectable_method: str | None = None
    verdict: str = "underpowered"
    same_attempts: bool = False


def verdict(result: PairResult, p_adjusted: float | None, alpha: float, relevant: float) -> str:
    """What may be said of b: `better`, `worse`, `no evidence` or `underpowered`.

    Better or worse: p is at most alpha (a p of exactly alpha rejects, as a level-alpha test does) and the whole
    interval lies on that side of zero. Else underpowered, where a difference of `relevant` could have been missed.

    >>> verdict(PairResult(40, 0, 0, ci_low=0.1, ci_high=0.3), 0.05, alpha=0.05, relevant=0.05)
    'better'
    """
    if p_adjusted is not None and p_adjusted <= alpha:
        if result.ci_low is not None and result.ci_low > 0:
            return "better"
        if result.ci_high is not None and result.ci_high < 0:
            return "worse"
    effect = result.minimum_detectable_effect
    return "underpowered" if effect is None or effect > relevant else "no evidence"


def sentence(result: PairResult, name_a: str, name_b: str) -> str:
    """The result in one line, for people. Rates and differences are in percentage points.

    >>> result = PairResult(40, 0, 0, difference=-0.121, ci_low=-0.203, ci_high=-0.04, p_adjusted=0.004, pairs=3,
    ...                     verdict="worse")
    >>> print(sentence(result, "atlas", "cedar"))
    cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.004 after Holm over 3 pairs, 40 problems)
    """
    if result.difference is None or result.ci_low is None or result.ci_high is None:
        return f"{name_b} and {name_a} cannot be compared: no problem was decided for both"
    if result.same_attempts:
        return f"every attempt of {name_b} ended as in {name_a} ({_problems(result)})"
    low, high = result.ci_low, result.ci_high
    if result.verdict in ("better", "worse"):
        ends = (low, high) if result.verdict == "better" else (-high, -low)
        size = _points(abs(result.difference))
        return f"{name_b} is {result.verdict} than {name_a} by {size} points ({_evidence(result, *ends)})"
    seen = f"difference {_points(result.difference, sign=True)} points ({_evidence(result, low, high)})"
    if result.verdict == "underpowered":
        return f"too little data to tell {name_b} from {name_a}: {seen}; {_reach(result)}"
    return f"no evidence that {name_b} differs from {name_a}: {seen}; {_reach(result)}"


def _evidence(result: PairResult, low: float, high: float) -> str:
    p = result.p_adjusted
    chance = "no p" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    after = f" after Holm over {result.pairs} pairs" if result.pairs > 1 else ""
    clustered = (result.method or "").endswith("-cluster")
    units = f" in {result.units:,} clusters" if clustered else ""
    interval = f"{100 * result.confidence:g}% CI {_points(low)} to {_points(high)}"
    return f"{interval}, {chance}{after}, {_problems(result)}{units}"


def _problems(result: PairResult) -> str:
    return "1 problem" if result.problems == 1 else f"{result.problems:,} problems"


def _reach(result: PairResult) -> str:
    effect = result.minimum_detectable_effect
    if effect is None:
        return "this data could not have seen a difference of any size"
    points = _points(effect).removesuffix(".0")
    if result.verdict == "underpowered":
        return f"this data could only have seen a difference of {points} points or more"
    return f"a difference of {points} points or more would probably have been seen"


def _points(difference: float, *, sign: bool = False) -> str:
    points = round(100 * difference, 1) + 0.0  # adding 0.0 turns -0.0 into 0.0
    return f"{points:+.1f}" if sign and points else f"{points:.1f}"
