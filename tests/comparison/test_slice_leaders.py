"""The best model overall against the others in each slice: a finding is certain, noise is not cried."""

import polars as pl

from tests.metrics.test_slices import problems
from touchstone.comparison.slice_leaders import best_in_slices
from touchstone.config import EvaluationConfig, SliceSettings
from touchstone.ingest.slice_values import problem_slices
from touchstone.metrics.pass_at_k import problem_pass_at_k
from touchstone.tables import PAIR_SETTINGS
from touchstone.tables.checks import CheckResult

DEFAULTS = EvaluationConfig.model_validate({"fixes_dir": ".", "output_dir": "."})
KIND = SliceSettings(column="kind")


def check(passes: dict[str, str], kinds: str, *configured: SliceSettings, tiers: str = "T0") -> CheckResult:
    """The check of models whose attempt at each problem passed (`1`) or not; `kinds` has the slice of each problem."""
    listed = problems({f"p{n:02}": {"kind": kind, "day": "2025-01-01"} for n, kind in enumerate(kinds)})
    outcomes = [
        {"model": model, "tier": tier, "oid": f"p{n:02}", "passed": bit == "1"}
        for tier in tiers.split()
        for model, bits in passes.items()
        for n, bit in enumerate(bits)
        if bit in "01"
    ]
    settings = [
        getattr(getattr(DEFAULTS, section), key) for section, key in (name.split(".") for name in PAIR_SETTINGS)
    ]
    by_problem = problem_pass_at_k(pl.LazyFrame(outcomes), [1])
    return best_in_slices(by_problem, listed.lazy(), problem_slices(listed, configured).lazy(), configured, *settings)


def test_a_model_that_is_certainly_better_in_a_slice_is_named_with_how_certain_that_is() -> None:
    # atlas solves all of x and none of y, cedar the other way round; x is larger.
    result = check({"atlas": "1" * 20 + "0" * 12, "cedar": "0" * 20 + "1" * 12}, "x" * 20 + "y" * 12, KIND)
    assert not result.passed and not result.error
    assert result.message.startswith(
        "the best model overall is not the best in every slice: kind y: cedar is better than"
    )
    assert "atlas by 100.0 points" in result.message and "12 problems" in result.message
    assert result.figures == {"slices": 2, "better_elsewhere": 1, "higher_within_noise": 0}


def test_what_may_be_chance_is_no_finding() -> None:
    result = check({"atlas": "1" * 20 + "110100110100", "cedar": "0" * 20 + "111100110100"}, "x" * 20 + "y" * 12, KIND)
    assert result.passed
    assert result.message == (
        "in no slice is another model significantly better (Holm); another scores higher in 1 of 2 slices"
    )


def test_many_slices_and_models_are_corrected_for() -> None:
    # Six wins and no loss: p = .03 for this pair alone, but twelve pairs were looked at.
    models = {"atlas": "1" * 30 + "000000"} | {f"m{n}": "0" * 36 for n in range(5)} | {"cedar": "0" * 30 + "111111"}
    assert check(models, "x" * 30 + "y" * 6, KIND).passed
    assert not check({name: models[name] for name in ("atlas", "cedar")}, "x" * 30 + "y" * 6, KIND).passed


def test_the_best_everywhere() -> None:
    assert check({"atlas": "111", "cedar": "100"}, "xxy", KIND).message == (
        "the best model overall is the best in each of 2 slices"
    )


def test_nothing_to_compare() -> None:
    assert check({"atlas": "11"}, "xy").message == "no slices are configured"
    assert check({"atlas": "11"}, "xy", KIND).message == "no two models attempted a slice"
    apart = check({"atlas": "1-", "cedar": "-0"}, "xx", KIND)
    assert apart.passed and apart.message == "no two models attempted a slice", "no problem that both attempted"


def test_tiers_have_their_own_best_model_and_are_named() -> None:
    passes = {"atlas": "1" * 20 + "0" * 12, "cedar": "0" * 20 + "1" * 12}
    result = check(passes, "x" * 20 + "y" * 12, KIND, tiers="T0 T1")
    assert "kind y (T0): cedar" in result.message and "kind y (T1): cedar" in result.message


def test_models_with_other_cutoffs_meet_on_the_problems_of_both_and_one_without_is_named() -> None:
    cut = SliceSettings.model_validate({"column": "day", "cutoff": {"atlas": "2024-01-01", "cedar": "2026-01-01"}})
    result = check({"atlas": "111", "cedar": "100", "boreal": "000"}, "xxy", cut)
    assert result.passed and result.message.endswith("left out: day has no cutoff for boreal")
