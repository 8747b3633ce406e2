"""Critical values of the normal and t distributions without scipy, whose import would slow down the fast commands."""

import math
from functools import lru_cache
from statistics import NormalDist

# More degrees of freedom than this use the expansion around the normal quantile.
_EXPANSION_FROM = 1000
_BISECTIONS = 60
# About 20 terms of the continued fraction are used for up to a thousand degrees of freedom.
_MAX_TERMS = 500
_TINY = 1e-300


def z_critical(confidence: float) -> float:
    """Two-sided critical value of the standard normal distribution.

    >>> round(z_critical(0.95), 6)
    1.959964
    """
    return NormalDist().inv_cdf((1 + confidence) / 2)


@lru_cache(maxsize=4096)
def t_critical(degrees: float, confidence: float) -> float:
    """Two-sided critical value of Student's t distribution; degrees of freedom may be fractional.

    >>> round(t_critical(4, 0.95), 6), round(t_critical(4.5, 0.95), 6)
    (2.776445, 2.658912)
    """
    if degrees > _EXPANSION_FROM:
        return _cornish_fisher(degrees, z_critical(confidence))
    two_tailed = _two_tailed_integer if degrees == int(degrees) else _two_tailed_fractional
    low, high = 0.0, math.pi / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if two_tailed(middle, degrees) > 1 - confidence else (low, middle)
    return math.tan(low) * math.sqrt(degrees)


def _two_tailed_integer(angle: float, degrees: float) -> float:
    """P(|T| > t) for t = tan(angle) * sqrt(degrees): the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = int(degrees) % 2
    term = cosine if odd else 1.0
    total = 0.0
    for place in range(1 + odd, int(degrees), 2):
        total += term
        term *= cosine * cosine * place / (place + 1)
    return 1 - (2 / math.pi * (angle + sine * total) if odd else sine * total)


def _two_tailed_fractional(angle: float, degrees: float) -> float:
    """The same for any degrees of freedom: the regularised incomplete beta function at cos(angle)^2."""
    x, y = math.cos(angle) ** 2, math.sin(angle) ** 2
    a, b = degrees / 2, 0.5
    if x <= 0 or y <= 0:
        return 1.0 if y <= 0 else 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y)
    # The continued fraction converges fast on one side of the mean of the distribution; the other uses the symmetry.
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(a, b, x) / a
    return 1 - math.exp(log_front) * _beta_fraction(b, a, y) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function by Lentz's method (Numerical Recipes, section 6.4)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    fraction = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d = 1 / (1 + coefficient * d or _TINY)
            c = 1 + coefficient / c or _TINY
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return fraction


def _cornish_fisher(degrees: float, z: float) -> float:
    """Cornish-Fisher expansion around the normal quantile z (Abramowitz and Stegun, 26.7.5); error O(degrees^-5)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, start=1))
