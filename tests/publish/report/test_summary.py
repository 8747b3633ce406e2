"""The paragraph on top: every claim follows from a verdict, a table or a check, and none goes further."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.publish.report.results import Row, figure, outcome, pair, write_results
from touchstone.publish.report.summary import best, change, headline, summary
from touchstone.publish.reported_run import ReportedRun

SETTINGS = [
    {"key": "intervals.confidence", "value": "0.9"},
    {"key": "comparison.relevant", "value": "0.05"},
    {"key": "comparison.alpha", "value": "0.05"},
]
THREE = [figure("atlas", 0.7), figure("boreal", 0.6), figure("cedar", 0.5)]


def said(root: Path, **tables: Any) -> str:
    run = ReportedRun(write_results(root, **{"settings": SETTINGS, **tables}))
    return " ".join([*headline(run), *summary(run)])


def said_first(root: Path, **tables: Any) -> str:
    return " ".join(headline(ReportedRun(write_results(root, **{"settings": SETTINGS, **tables}))))


def said_of_best(root: Path, **tables: Any) -> str:
    return " ".join(best(ReportedRun(write_results(root, **{"settings": SETTINGS, **tables}))))


# The result in plain words

TWO_TIERS = [figure("atlas", 0.6), figure("atlas", 0.7, "T1"), figure("boreal", 0.5), figure("boreal", 0.65, "T1")]
ATLAS = "atlas repairs 70 of 100 problems at the first try (probably 60 to 80)"
ON_40 = " This was measured on 40 problems."


@pytest.mark.parametrize(
    ("figures", "pairs", "expected"),
    [
        pytest.param(
            THREE,
            [pair("atlas", "boreal", "worse"), pair("cedar", "atlas", "better")],
            f"{ATLAS}, clearly ahead of both others.{ON_40}",
            id="ahead of all",
        ),
        pytest.param(
            THREE[:2], [pair("atlas", "boreal", "worse")], f"{ATLAS}, clearly ahead of boreal.{ON_40}", id="of two"
        ),
        pytest.param(
            THREE,
            [pair("atlas", "boreal", "inconclusive"), pair("atlas", "cedar", "inconclusive")],
            f"{ATLAS}, but is not clearly ahead of either other model: no winner is certain.{ON_40}",
            id="nothing decided",
        ),
        pytest.param(
            THREE[:2],
            [pair("atlas", "boreal", "inconclusive")],
            f"{ATLAS}, but is not clearly ahead of boreal: no winner is certain.{ON_40}",
            id="nothing decided between two",
        ),
        pytest.param(
            [*THREE, figure("dune", 0.4), figure("elm", 0.3)],
            [
                pair("atlas", "boreal", "no relevant difference"),
                pair("atlas", "cedar", "better"),
                pair("dune", "atlas", "better"),
            ],
            f"{ATLAS}. It is clearly ahead of dune; practically level with boreal; "
            f"behind cedar on the problems that both attempted; not compared with elm.{ON_40}",
            id="every kind of verdict",
        ),
        pytest.param(
            TWO_TIERS,
            [pair("atlas", "boreal", "worse", tier="T1"), pair("atlas", "boreal", "inconclusive")],
            "atlas (tier T1) repairs 70 of 100 problems at the first try (probably 60 to 80), "
            f"clearly ahead of boreal at this tier.{ON_40}",
            id="the verdict is that of the best tier",
        ),
        pytest.param(
            [figure("atlas", 0.7), figure("boreal", 0.7), figure("cedar", 0.5)],
            [pair("atlas", "boreal", "inconclusive"), pair("atlas", "cedar", "worse")],
            "atlas and boreal share the first place: each repairs 70 of 100 problems at the first try "
            f"(probably 60 to 80).{ON_40}",
            id="a tie",
        ),
        pytest.param(
            [figure("atlas", 0.7), figure("boreal", 0.7, ci_low=0.5)],
            [],
            f"atlas and boreal share the first place: each repairs 70 of 100 problems at the first try.{ON_40}",
            id="a tie of different intervals",
        ),
        pytest.param([figure("atlas", 0.7)], [], f"{ATLAS}. It is the only model.{ON_40}", id="one model"),
        pytest.param(
            [figure("atlas", 0.7, "T0"), figure("atlas", 0.6, "T1")],
            [],
            f"atlas (tier T0) repairs 70 of 100 problems at the first try (probably 60 to 80).{ON_40}",
            id="one model at two tiers",
        ),
        pytest.param(
            [figure("atlas", 0.7, ci_low=None, ci_high=None)],
            [],
            f"atlas repairs 70 of 100 problems at the first try. It is the only model.{ON_40}",
            id="no interval",
        ),
        pytest.param(
            [figure("atlas", 0.704, ci_low=0.701, ci_high=0.7049)],
            [],
            "atlas repairs 70 of 100 problems at the first try (known to within one of 100). It is the only model."
            f"{ON_40}",
            id="a narrow interval",
        ),
        pytest.param(
            [figure("atlas", 0.7, eligible=38, attempted=38)],
            [],
            f"{ATLAS}. It is the only model. This was measured on 38 of 40 problems; the other 2 have no "
            "decided attempt.",
            id="undecided attempts",
        ),
        pytest.param(
            [figure("atlas", 0.999, k=5, ci_low=0.99)],
            [],
            "atlas repairs more than 99 of 100 problems within 5 tries (probably 99 to 100). It is the only model."
            f"{ON_40}",
            id="nearly all, within several tries",
        ),
        pytest.param(
            [figure("atlas", 1.0, ci_low=0.91)],
            [],
            "atlas repairs every problem at the first try (probably at least 91 of 100). It is the only model." + ON_40,
            id="all",
        ),
        pytest.param(
            [figure("atlas", 0.0, ci_high=0.002), figure("boreal", 0.0, ci_high=0.002)],
            [pair("atlas", "boreal", "inconclusive")],
            f"No model repairs any problem at the first try (probably fewer than 1 of 100).{ON_40}",
            id="none",
        ),
        pytest.param(
            [figure("atlas", None, k=5)], [], "There is no result yet: no problem has 5 decided attempts.", id="null"
        ),
        pytest.param([], [], "There are no figures: no attempt was evaluated.", id="no figures"),
    ],
)
def test_the_first_paragraph_is_plain_and_no_surer_than_the_verdicts(
    tmp_path: Path, figures: list[Row], pairs: list[Row], expected: str
) -> None:
    assert said_first(tmp_path, pass_at_k=figures, model_comparison=pairs) == expected


def test_the_first_paragraph_says_what_got_worse_and_which_checks_failed(tmp_path: Path) -> None:
    worse = {"model": "m", "tier": "T0", "baseline": "base", "verdict": "worse", "difference": -0.2}
    failed = {"passed": False, "message": "because", "error": True, "figures": {}}
    text = said_first(tmp_path, checks={"pass_at_k.coverage": failed}, pass_at_k=ONE, baseline_verdicts=[worse])
    assert "Against the baseline base: m (by 20.0 points) is worse." in text
    assert text.endswith("1 check failed (pass_at_k.coverage): read why before you trust the figures.")


# Who is best


def test_a_model_is_best_only_if_it_is_better_than_every_other_by_the_verdicts(tmp_path: Path) -> None:
    pairs = [pair("atlas", "boreal", "worse"), pair("cedar", "atlas", "better")]
    assert said_of_best(tmp_path, pass_at_k=THREE, model_comparison=pairs) == (
        "atlas is best: pass@1 0.700 (90% CI 0.600 to 0.800, 40 problems); it is better than both others "
        "(pass@1 paired by problem, Holm-adjusted for 3 pairs)."
    )


TOO_FEW = {"units_needed": 9, "problems": 4, "ci_units": 4, "minimum_detectable_effect": None}


@pytest.mark.parametrize(
    ("pairs", "sentences"),
    [
        *(
            pytest.param(
                [pair("atlas", "boreal", verdict), pair("atlas", "cedar", "worse")],
                [
                    "but the next model cannot be told apart from it: boreal.",
                    "It is better than cedar (pass@1 paired by problem, Holm-adjusted for 3 pairs).",
                    "These data would find a difference of 8.0 points four times in five if it is spread evenly; less "
                    "often if ",
                ],
                id=f"{verdict} against the next",
            )
            for verdict in ("inconclusive", "no evidence")
        ),
        pytest.param(
            [pair("atlas", "boreal", "worse"), pair("atlas", "cedar", "inconclusive")],
            ["but cannot be told apart from cedar.", "It is better than boreal"],
            id="the undecided need not be next in rank",
        ),
        pytest.param(
            [pair("atlas", "boreal", "inconclusive", **TOO_FEW), pair("atlas", "cedar", "inconclusive", **TOO_FEW)],
            [
                "but neither other model can be told apart from it",
                "There is too little data: 4 problems cannot reach p ≤ 0.05 over 3 pairs; at least 9 are needed.",
            ],
            id="nothing is decided",
        ),
        pytest.param(
            [pair("atlas", "boreal", "no relevant difference"), pair("atlas", "cedar", "worse")],
            ["Any difference from boreal is smaller than 5 points (95% CI, Holm-adjusted for 3 pairs)."],
            id="no relevant difference is a finding with its margin",
        ),
        pytest.param(
            [pair("atlas", "boreal", "better"), pair("atlas", "cedar", "worse")],
            ["On the problems that both attempted, boreal did better than it."],
            id="the leader lost a pair",
        ),
        pytest.param(
            [pair("cedar", "atlas", "better"), pair("cedar", "boreal", "better")],
            ["It was not compared with boreal: all are compared with cedar instead."],
            id="not every model was compared",
        ),
    ],
)
def test_a_leader_that_is_not_better_than_all_is_not_called_best(
    tmp_path: Path, pairs: list[Row], sentences: list[str]
) -> None:
    settings = [*SETTINGS, {"key": "comparison.baseline_model", "value": '"cedar"'}]
    text = said_of_best(tmp_path, settings=settings, pass_at_k=THREE, model_comparison=pairs)
    assert text.startswith("atlas has the highest pass rate: pass@1 0.700 (90% CI 0.600 to 0.800, 40 problems)")
    assert all(sentence in text for sentence in sentences)
    assert "best" not in text and "significant" not in text


def test_each_tier_has_its_own_best_and_later_ones_are_counted(tmp_path: Path) -> None:
    rows = [
        figure(model, rate + tier / 50, f"T{tier}")
        for tier in range(5)
        for model, rate in (("atlas", 0.7), ("boreal", 0.6))
    ]
    pairs = [pair("boreal", "atlas", "better", tier=f"T{tier}") for tier in range(5)]
    text = said_of_best(tmp_path, pass_at_k=rows, model_comparison=pairs)
    assert re.findall("atlas is best at tier (..)", text) == ["T4", "T3", "T2"], "the best tier first"
    assert "The leaderboard has 2 more tiers." in text


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (figure("m", 0.5), "m is the only model: pass@1 0.500 (90% CI 0.400 to 0.600, 40 problems)."),
        (
            figure("m", 0.5, ci_low=None, ci_high=None, ci_method=None),
            "m is the only model: pass@1 0.500 (no confidence interval, 40 problems).",
        ),
        (
            figure("m", 0.5, ci_method="t", ci_units=7),
            "m is the only model: pass@1 0.500 (90% CI 0.400 to 0.600, 40 problems in 7 clusters).",
        ),
        (figure("m", None, k=5), "No model has a pass@5: no problem has 5 decided attempts."),
    ],
)
def test_one_model(tmp_path: Path, row: Row, expected: str) -> None:
    assert said_of_best(tmp_path, pass_at_k=[row]) == expected


# What changed


def test_without_a_baseline_nothing_is_said_about_change(tmp_path: Path) -> None:
    assert "No baseline is pinned, so nothing is known about change." in said(tmp_path, pass_at_k=ONE)
    assert "baseline" not in said_first(tmp_path / "again", pass_at_k=ONE)


def test_changes_are_what_the_verdicts_and_cases_say(tmp_path: Path) -> None:
    verdicts = [
        {"model": model, "tier": "T0", "baseline": "base-1", "verdict": verdict, "difference": difference}
        for model, verdict, difference in (("a", "worse", -0.12), ("b", "worse", -0.2), ("c", "better", 0.2))
    ]
    undecided = {"model": "d", "tier": "T0", "baseline": "base-1", "verdict": "inconclusive", "wins": 1}
    same = {"model": "e", "tier": "T0", "baseline": "base-1", "verdict": "inconclusive", "ties": 40}
    verdicts += [undecided, same]
    counts = [{"model": "a", "tier": "T0", "regressions": 3, "expected_by_chance": 1.25, "improvements": 1, "lost": 1}]
    run = ReportedRun(write_results(tmp_path, baseline_verdicts=verdicts, regression_counts=counts))
    assert list(change(run)) == [
        "Against the baseline base-1: b and a (by 12.0 to 20.0 points) are worse; c (by 20.0 points) is better; "
        "equal on every problem for 1 of 5 models; undecided for 1 of 5 models.",
        "3 cases regressed (1.2 expected by chance alone), 1 improved, 1 case lost (no decided attempt now).",
    ]


# What not to trust

ONE = [figure("m", 0.5)]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (
            {"outcomes": [outcome(), outcome(iteration="2", passed=None, fidelity=None)]},
            "1 of 2 attempts (50.0%) could not be decided and counts neither as passed nor as failed.",
        ),
        (
            {"pass_at_k": [figure("m", 0.5, attempted=30)]},
            "1 of 1 model has problems without a decided attempt, which are left out.",
        ),
        (
            {"pass_at_k": [figure("m", 0.5, problems=8)]},
            "The sample is small: some figures rest on 8 independent units (problems, each cluster counted once).",
        ),
        (
            {"pass_at_k": [figure("m", 0.5, ci_low=None, ci_high=None)]},
            "1 of 1 pass@k figure has no confidence interval.",
        ),
        ({"quarantine": [{"reason": "ragged"}] * 2}, "2 rows were refused and are not counted."),
        (
            {"validator_noise": [{"oid": "a", "test": "t", "flaky": True}, {"oid": "a", "flaky": True}]},
            "1 test of 1 problem is flaky.",
        ),
        ({"model_statistics": [{"model": "m", "unpriced_attempts": 3}]}, "Costs are unknown for 1 of 1 model."),
        (
            {"outcomes": [outcome(validator="recorded", fidelity="recorded")]},
            "All outcomes are as the input files state them; nothing was validated here.",
        ),
        ({"outcomes": [outcome(fidelity="static")]}, "1 of 1 outcome comes from a partial check (static)."),
    ],
)
def test_every_reservation_has_its_sentence(tmp_path: Path, tables: dict[str, Any], expected: str) -> None:
    text = said(tmp_path, **{"pass_at_k": ONE, **tables})
    assert expected in text and "Nothing speaks against" not in text


def test_failed_checks_come_before_warnings(tmp_path: Path) -> None:
    failed = {"passed": False, "message": "because", "error": True, "figures": {}}
    checks = {"pass_at_k.coverage": failed, "outcomes.all_decided": failed | {"error": False}}
    text = said(tmp_path, checks=checks, pass_at_k=ONE, outcomes=[outcome()])
    assert "1 check failed (pass_at_k.coverage): read why before you trust the figures." in text
    assert " 1 check warned (outcomes.all_decided)." in text


def test_with_no_reservation_it_says_what_that_rests_on(tmp_path: Path) -> None:
    passed = {"passed": True, "message": "", "error": True, "figures": {}}
    text = said(tmp_path, checks={"pass_at_k.coverage": passed}, pass_at_k=ONE, outcomes=[outcome()])
    assert text.endswith(
        "Nothing speaks against these figures: 1 of 1 check passed, no row was refused, and every attempt was decided."
    )
