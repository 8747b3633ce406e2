"""Verdicts and sentences: what follows from the figures, and that they never contradict each other."""

import math

import numpy as np
import pytest

from touchstone.comparison.verdicts import PairResult, sentence, verdicts


def result_with(**figures: object) -> PairResult:
    known: dict[str, object] = {
        "problems": 40,
        "problems_only_a": 0,
        "problems_only_b": 0,
        "difference": -0.121,
        "ci_low": -0.203,
        "ci_high": -0.04,
        "p_value": 0.004,
        "p_adjusted": 0.004,
        "adjusted_ci_low": -0.203,
        "adjusted_ci_high": -0.04,
        "minimum_detectable_effect": 0.14,
        "units": 40,
        "method": "t",
    }
    return PairResult(**(known | figures))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"p_adjusted": 0.05}, "worse"),
        ({"p_adjusted": 0.0500001}, "inconclusive"),
        ({"p_adjusted": None}, "inconclusive"),
        ({"difference": 0.1}, "better"),
        # The interval has no say where the test rejects, however it was made.
        ({"difference": 0.1, "ci_low": -0.2, "ci_high": 0.4, "adjusted_ci_low": -0.3, "adjusted_ci_high": 1}, "better"),
        ({"difference": 0.01, "adjusted_ci_low": 0.001, "adjusted_ci_high": 0.02}, "better"),
        ({"p_adjusted": 0.2, "adjusted_ci_low": -0.049, "adjusted_ci_high": 0.02}, "no relevant difference"),
        ({"p_adjusted": 0.2, "adjusted_ci_low": -0.05, "adjusted_ci_high": 0.02}, "inconclusive"),
        ({"p_adjusted": 1, "adjusted_ci_low": -0.05, "adjusted_ci_high": 0, "relevant": 0.1}, "no relevant difference"),
    ],
)  # fmt: skip
def test_verdicts(figures: dict[str, object], words: str) -> None:
    result = result_with(**figures)
    names = ["difference", "p_adjusted", "adjusted_ci_low", "adjusted_ci_high"]
    known = [getattr(result, name) for name in names]
    difference, p, low, high = (np.array([math.nan if each is None else each]) for each in known)
    assert verdicts(difference, p, (low, high), result.alpha, result.relevant).tolist() == [words]


ADJUSTED = {"pairs": 3, "p_value": 0.002, "adjusted_ci_low": -0.222, "adjusted_ci_high": -0.021}


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (
            {"verdict": "worse"},
            "cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.004, 40 problems)",
        ),
        (
            {"verdict": "worse", **ADJUSTED},
            "cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.002; "
            "adjusted for 3 pairs: 95% CI 2.1 to 22.2, p = 0.004; 40 problems)",
        ),
        (
            {"verdict": "worse", **ADJUSTED, "correction": "benjamini-yekutieli", "alpha": 0.1},
            "cedar is worse than atlas by 12.1 points (95% CI 4.0 to 20.3, p = 0.002; "
            "adjusted for 3 pairs, false discovery rate: 90% CI 2.1 to 22.2, p = 0.004; 40 problems)",
        ),
        (
            {"verdict": "better", "difference": 0.5, "ci_low": 0.4, "ci_high": 0.6, "p_value": 1e-9},
            "cedar is better than atlas by 50.0 points (95% CI 40.0 to 60.0, p < 0.001, 40 problems)",
        ),
        (
            {"verdict": "no relevant difference", "difference": 0.004, "ci_low": -0.011, "ci_high": 0.02,
             "p_value": 0.6},
            "no relevant difference between cedar and atlas: difference +0.4 points "
            "(95% CI -1.1 to 2.0, p = 0.600, 40 problems), within 5 points either way",
        ),
        (
            {"verdict": "inconclusive", "ci_high": 0.1, "p_value": 0.3, "method": "t", "units": 9},
            "cedar against atlas is inconclusive: -20.3 to +10.0 points (95% CI; difference -12.1, p = 0.300, "
            "40 problems in 9 clusters); minimum detectable effect 14 points if spread evenly",
        ),
        (
            {"verdict": "inconclusive", "ci_high": 0.1, "p_value": 0.1, "units": 5, "problems": 5, "units_needed": 6},
            "cedar against atlas is inconclusive: -20.3 to +10.0 points (95% CI; difference -12.1, p = 0.100, "
            "5 problems); 5 problems cannot reach p ≤ 0.05; at least 6 are needed",
        ),
        (
            {"verdict": "inconclusive", "difference": 0.0, "minimum_detectable_effect": 0.042, "p_value": 1.0,
             "ci_low": -0.02, "ci_high": 0.02, "confidence": 0.9, "detectable_on_few": 0.061},
            "cedar against atlas is inconclusive: -2.0 to +2.0 points (90% CI; difference 0.0, p = 1.000, 40 problems)"
            "; minimum detectable effect 4.2 points if spread evenly, 6.1 on few problems",
        ),
        (
            {"verdict": "inconclusive", **ADJUSTED, "p_adjusted": 0.06, "p_changed": 0.3, "fell": 1},
            "cedar against atlas is inconclusive: -22.2 to -2.1 points (95% CI adjusted for 3 pairs; difference -12.1, "
            "p = 0.002 for the mean; 1 problem fell and 0 rose, p = 0.300; adjusted p = 0.060 for both tests, "
            "40 problems); minimum detectable effect 14 points if spread evenly",
        ),
    ],
)  # fmt: skip
def test_sentences(figures: dict[str, object], words: str) -> None:
    assert sentence(result_with(**figures), "atlas", "cedar") == words
