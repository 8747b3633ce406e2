"""The checks judge frames: each passes on good data and speaks up on bad."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from touchstone.config import CheckLimits, IntervalSettings
from touchstone.config.scoring import Price, Scoring
from touchstone.ingest import checks as ingest_checks
from touchstone.metrics import checks as metric_checks
from touchstone.metrics.attempts import cost_at, price_name
from touchstone.tables.checks import CheckResult
from touchstone.validation import checks as validation_checks
from touchstone.validation.protocol import RETRIED
from touchstone.vocabulary import STATUSES, WARNING_NOT_SHOWN

LIMITS = CheckLimits()
TOKENS = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]


def sources(rows: int, quarantined: int) -> pl.DataFrame:
    return pl.DataFrame({"model": ["m"], "source_file": ["m_fixes.csv"], "rows": [rows], "quarantined": [quarantined]})


def quarantine(*kinds: str) -> pl.DataFrame:
    rows = [("m_fixes.csv", 1, kind, f"because of {kind}", "") for kind in kinds]
    columns = ["source_file", "line", "kind", "reason", "raw"]
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String) | {"line": pl.Int64}, orient="row")


def figures(**changes: object) -> pl.DataFrame:
    row = {
        "model": "m", "tier": "T0", "k": 1, "pass_at_k": 0.5, "ci_low": 0.4, "ci_high": 0.6, "pass_at_k_all": 0.5,
        "pass_hat_k": 0.5, "problems": 10, "attempted": 10, "eligible": 10,
    }  # fmt: skip
    return pl.DataFrame([row | changes])


def test_unreadable_files_are_an_error() -> None:
    assert ingest_checks.files_readable(quarantine("ragged")).passed
    found = ingest_checks.files_readable(quarantine("unreadable_file"))
    assert (found.passed, found.error, found.message) == (False, True, "because of unreadable_file")


@pytest.mark.parametrize(("refused", "passed"), [(0, True), (5, True), (6, False)])
def test_quarantine_share(refused: int, passed: bool) -> None:
    found = ingest_checks.quarantine_share(sources(100, refused), LIMITS)
    assert (found.passed, found.error) == (passed, True)
    assert found.figures["worst_share"] == refused / 100


def test_quarantine_share_names_every_file_over_the_limit() -> None:
    files = pl.DataFrame(
        {
            "model": ["a", "b", "c"],
            "source_file": ["a_fixes.csv", "b_fixes.csv", "c_fixes.csv"],
            "rows": [100, 100, 100],
            "quarantined": [6, 5, 50],
        }
    )
    found = ingest_checks.quarantine_share(files, LIMITS)
    assert found.message == (
        "61 of 300 rows are in quarantine; more than 5.0%: 50.0% of c_fixes.csv (c), 6.0% of a_fixes.csv (a)"
    )
    assert found.figures == {"quarantined_rows": 61, "worst_share": 0.5, "over": 2}


def test_quarantine_share_of_nothing() -> None:
    assert ingest_checks.quarantine_share(sources(0, 0), LIMITS).passed


def test_unknown_oids() -> None:
    assert ingest_checks.unknown_oids(sources(100, 1), quarantine("unknown_oid"), LIMITS).passed
    found = ingest_checks.unknown_oids(sources(100, 2), quarantine("unknown_oid", "unknown_oid"), LIMITS)
    assert (found.passed, found.error, found.figures["unknown_oids"]) == (False, False, 2)
    assert found.message.endswith("(for example m_fixes.csv, line 1: because of unknown_oid)")


def test_unique_keys() -> None:
    rows = pl.LazyFrame({"model": "m", "tier": "T0", "oid": ["a", "a", "b"], "iteration_id": "1"})
    assert ingest_checks.unique_keys(rows.unique()).passed
    found = ingest_checks.unique_keys(rows)
    assert (found.passed, found.error, found.figures["duplicate_keys"]) == (False, True, 1)


@pytest.mark.parametrize(
    ("iterations", "repeated"), [(["1", "2", "10"], 0), (["1", "x", "01"], 0), (["1", "2", "1"], 1)]
)
def test_unique_keys_over_several_files(tmp_path: Path, iterations: list[str], repeated: int) -> None:
    for model in ("m", "n"):
        rows = pl.DataFrame({"model": model, "tier": "T0", "oid": "a", "iteration_id": iterations})
        rows.write_parquet(tmp_path / f"{model}.parquet", row_group_size=1)
    found = ingest_checks.unique_keys(pl.scan_parquet(tmp_path / "*.parquet"))
    assert found.figures["duplicate_keys"] == 2 * repeated


def test_all_decided() -> None:
    assert validation_checks.all_decided(outcomes({"passed": True}, {"passed": False})).passed
    found = validation_checks.all_decided(outcomes({"passed": True}, {"passed": None}))
    assert (found.passed, found.figures["undecided"]) == (False, 1)
    assert validation_checks.all_decided(outcomes({"passed": None, "ruling": "exclude"})).passed


def test_coverage() -> None:
    assert metric_checks.coverage(figures(), LIMITS).passed
    found = metric_checks.coverage(figures(attempted=9), LIMITS)
    assert not found.passed and "m T0: 9 of 10" in found.message
    assert metric_checks.coverage(figures(attempted=9), CheckLimits(min_coverage=0.9)).passed


def test_enough_samples() -> None:
    assert metric_checks.enough_samples(figures()).passed
    found = metric_checks.enough_samples(figures(eligible=7))
    assert not found.passed and "m T0: 3 at k=1" in found.message


@pytest.mark.parametrize(
    "change",
    [{"pass_at_k": 1.1, "ci_high": 1.0}, {"ci_low": -0.1}, {"ci_low": 0.55}, {"ci_high": 0.45}, {"pass_hat_k": 2.0}],
)
def test_figures_out_of_bounds_are_an_error(change: dict[str, float]) -> None:
    found = metric_checks.within_bounds(figures(**change))
    assert (found.passed, found.error) == (False, True)


def test_figures_in_bounds_or_undefined() -> None:
    assert metric_checks.within_bounds(figures()).passed
    undefined = figures().with_columns(
        pl.lit(None, pl.Float64).alias(name) for name in ("pass_at_k", "ci_low", "ci_high")
    )
    assert metric_checks.within_bounds(undefined).passed


def priced(*rows: dict[str, object], prices: dict[str, Price] | None = None) -> CheckResult:
    """The check on attempts of the model m, scored at these prices."""
    names = ["cost_usd", "attempted_on", *TOKENS]
    made = [
        {"model": "m", "tier": "T0", "oid": "a", "iteration_id": str(i)} | dict.fromkeys(names) | row
        for i, row in enumerate(rows)
    ]
    types = dict.fromkeys(names, pl.Int64()) | {"cost_usd": pl.Float64(), "attempted_on": pl.String()}
    attempts = pl.LazyFrame(made, schema_overrides=types)
    scoring = Scoring(prices=prices or {})
    scores = attempts.with_columns(
        cost_usd=pl.coalesce("cost_usd", cost_at(price_name(pl.col("model"), scoring), scoring.all_prices)),
        total_tokens=pl.coalesce(pl.sum_horizontal(TOKENS).replace(0, None)),
    )
    return metric_checks.every_model_priced(attempts, scores, scoring)


M_PRICE = {"m": Price(input=1, output=1)}
COUNTED: dict[str, object] = {"input_tokens": 5, "output_tokens": 5}


def test_every_model_priced() -> None:
    assert priced(COUNTED, prices=M_PRICE).passed
    assert priced({"cost_usd": 0.1}).passed
    assert priced({}).passed, "without tokens or costs there is nothing to price"
    found = priced(COUNTED, COUNTED)
    assert (found.passed, found.error, found.figures["unpriced_attempts"]) == (False, False, 2)
    assert found.message == "no price for m: add one to 'scoring.prices' in the config"


@pytest.mark.parametrize(
    ("odd", "others", "prices", "why"),
    [
        ({}, {"cost_usd": 0.5}, {}, "cost_usd is missing"),
        (COUNTED, {"cost_usd": 0.5}, {}, "cost_usd is missing"),
        ({"input_tokens": 5}, COUNTED, M_PRICE, "input_tokens or output_tokens is missing"),
        ({}, COUNTED, M_PRICE, "input_tokens or output_tokens is missing"),
        (COUNTED | {"cache_read_tokens": 3}, COUNTED, M_PRICE, "the price 'm' has no 'cache_read'"),
        (
            COUNTED | {"input_tokens": 10**12},
            COUNTED,
            {"m": Price(input=1e5, output=1)},
            "the price 'm' gives more than $1,000,000,000",
        ),
    ],
)
def test_a_missing_cost_is_not_blamed_on_the_price(
    odd: dict[str, object], others: dict[str, object], prices: dict[str, Price], why: str
) -> None:
    found = priced(odd, *[others] * 59, prices=prices)
    assert (found.passed, found.message) == (False, f"m: 1 of 60 attempts has no cost ({why})")
    two = priced(odd, odd, *[others] * 58, prices=prices)
    assert two.message == f"m: 2 of 60 attempts have no cost ({why})"


def test_classes_add_up() -> None:
    suites = pl.DataFrame({"cases": [3], "class_pass": [2], "class_none": [1]})
    assert metric_checks.classes_add_up(suites).passed
    found = metric_checks.classes_add_up(suites.with_columns(class_none=pl.lit(0)))
    assert (found.passed, found.error) == (False, True)


def test_unknown_classes_are_reported_with_their_counts() -> None:
    scores = pl.LazyFrame({"classification": ["pass", "babble", None, "hallucination", "babble"]})
    found = metric_checks.known_classes(scores)
    assert (found.passed, found.error) == (False, False)
    assert found.message.startswith("3 of 5 attempts have an unknown class and score 0: babble 2, hallucination 1; ")
    assert found.figures == {"unknown_class_attempts": 3, "class babble": 2, "class hallucination": 1}
    assert metric_checks.known_classes(scores.filter(pl.col("classification").is_in(["pass"]))).passed


def test_classes_that_a_validator_here_contradicts_are_reported() -> None:
    key = {"model": ["m", "n", "n", "n"], "tier": "T0", "oid": "a", "iteration_id": ["1", "2", "3", "4"]}
    attempts = pl.LazyFrame({**key, "classification": ["pass", "refusal", "pass", None]})
    outcomes = pl.LazyFrame({**key, "measured": [False, True, None, True], "validator": "pytest"})
    found = metric_checks.classes_match_outcomes(attempts, outcomes)
    assert (found.passed, found.error) == (False, False)
    assert found.message == (
        "2 attempts were validated with an outcome that contradicts their class (1 of class pass failed, "
        "1 of another class passed); the validator's outcome counts"
    )
    assert metric_checks.classes_match_outcomes(attempts, outcomes.filter(pl.col("iteration_id") > "2")).passed
    stated = outcomes.with_columns(validator=pl.lit("recorded"))
    assert metric_checks.classes_match_outcomes(attempts, stated).passed


def judged(*counts: int, model: str = "m") -> pl.LazyFrame:
    """Attempts: passed and scored, failed and scored, passed and not scored, failed and not scored."""
    kinds = [(1.0, 0.9), (0.0, 0.9), (1.0, None), (0.0, None)]
    rows = [(model, "T0", *kind) for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
    schema = {"model": pl.String, "tier": pl.String, "pass_rate": pl.Float64, "impl_rate": pl.Float64}
    return pl.LazyFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("counts", "passed"),
    [
        ((85, 5, 0, 45), False),
        ((85, 50, 0, 0), True),
        ((0, 0, 85, 50), True),
        ((60, 30, 20, 10), True),
        ((30, 30, 20, 0), True),
        ((2, 1, 0, 1), True),
        ((5000, 4950, 0, 50), True),
        ((0, 90, 0, 45), True),
    ],
    ids=["gone with failing", "none", "no judge", "as often", "with passing", "too few", "too little", "all failed"],
)
def test_missing_scores(counts: tuple[int, ...], passed: bool) -> None:
    found = metric_checks.missing_scores(judged(*counts), "exclude")
    assert (found.passed, found.error) == (passed, False)
    assert found.figures["unscored_attempts"] == (counts[2] + counts[3] if counts[0] + counts[1] else 0)


def test_missing_scores_that_count_as_0_hide_nothing() -> None:
    assert metric_checks.missing_scores(judged(85, 5, 0, 45), "zero").passed


def test_missing_scores_names_every_group_and_how_many_failed() -> None:
    found = metric_checks.missing_scores(pl.concat([judged(85, 5, 1, 44), judged(30, 0, 0, 9, model="n")]), "exclude")
    assert found.message.startswith("m T0: 45 of 135 attempts have no judge's score and 44 of the 45 failed, so")
    assert "; n T0: 9 of 39 attempts have no judge's score and all 9 failed" in found.message


def test_chance_alone_rarely_looks_like_missing_with_failing() -> None:
    generator = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        passed, scored = generator.random((2, 100)) < 0.6
        frame = pl.LazyFrame(
            {"model": "m", "tier": "T0", "pass_rate": passed * 1.0, "impl_rate": np.where(scored, 0.5, np.nan)}
        )
        alarms += not metric_checks.missing_scores(
            frame.with_columns(pl.col("impl_rate").fill_nan(None)), "exclude"
        ).passed
    assert alarms <= 16


def test_no_empty_suite() -> None:
    problems = pl.LazyFrame({"suite": ["full", "lonely"], "excluded": False})
    scored = pl.LazyFrame({"suite": ["full"], "excluded": False})
    assert metric_checks.no_empty_suite(scored, scored).passed
    found = metric_checks.no_empty_suite(problems, scored)
    assert not found.passed and "lonely" in found.message


def outcomes(*rows: dict[str, object]) -> pl.LazyFrame:
    filler: dict[str, object] = {
        "model": "m",
        "tier": "T0",
        "oid": "a",
        "status": "passed",
        "passed": True,
        "fidelity": "full",
        "sandbox": "bubblewrap",
        "diagnostics": None,
        "applied": True,
        "compiled": True,
        "consistent": True,
    }
    types = {"passed": pl.Boolean, "diagnostics": pl.String, "sandbox": pl.String}
    types |= {"consistent": pl.Boolean, "compiled": pl.Boolean, "measured": pl.Boolean, "ruling": pl.String}
    ruled = [{"ruling": None, "measured": (filler | row)["passed"], **filler, **row} for row in rows]
    return pl.LazyFrame(ruled, schema_overrides=types)


UNDECIDED: dict[str, object] = {"status": "sandbox_error", "passed": None, "sandbox": None, "diagnostics": "no room"}


def test_undecided_share() -> None:
    assert validation_checks.undecided_share(outcomes({}, {}), LIMITS).passed
    found = validation_checks.undecided_share(outcomes(UNDECIDED, *[{}] * 8), LIMITS)
    assert (found.passed, found.error) == (False, True)
    assert found.message == (
        "1 of 9 fixes given to validators was not decided (sandbox_error 1: no room); run again "
        "(`touchstone validators` shows what works on this machine), or raise checks.max_undecided_share"
    )
    assert validation_checks.undecided_share(outcomes(UNDECIDED, *[{}] * 9), LIMITS).passed, (
        "the limit itself is allowed"
    )
    recorded = {"status": "validator_unavailable", "passed": None, "sandbox": None}
    assert validation_checks.undecided_share(outcomes(recorded), LIMITS).passed, "nothing was given to a validator"
    warning = UNDECIDED | {"diagnostics": WARNING_NOT_SHOWN, "sandbox": None}
    assert validation_checks.undecided_share(outcomes(warning, {}), LIMITS).passed, "a warning closes no gate"


COUNTING = pl.LazyFrame(schema={"oid": pl.String, "excluded": pl.Boolean})


def baselines(*rows: tuple[bool | None, str | None]) -> pl.LazyFrame:
    types = {"fails_as_recorded": pl.Boolean, "reference_status": pl.String, "diagnostics": pl.String}
    return pl.DataFrame(
        [
            {"oid": f"p{place}", "fails_as_recorded": fails, "reference_status": reference, "diagnostics": "said"}
            for place, (fails, reference) in enumerate(rows)
        ],
        schema={"oid": pl.String, **types},
    ).lazy()


def test_baselines_fail_as_recorded() -> None:
    good = baselines((True, "passed"), (None, None))
    assert validation_checks.baselines_fail_as_recorded(good, COUNTING, LIMITS).passed
    assert validation_checks.baselines_fail_as_recorded(baselines(), COUNTING, LIMITS).passed
    found = validation_checks.baselines_fail_as_recorded(baselines((True, None), (False, None)), COUNTING, LIMITS)
    assert (found.passed, found.error) == (False, True)
    assert "1 of 2 problems" in found.message and "p1: said" in found.message
    allowed = CheckLimits(max_untrusted_share=0.5)
    assert validation_checks.baselines_fail_as_recorded(
        baselines((True, None), (False, None)), COUNTING, allowed
    ).passed


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "passed"])
def test_every_gate_names_its_remedy(status: str) -> None:
    """In its one line: what to change, and that a run later may find it right."""
    undecided = outcomes({**UNDECIDED, "status": status}, {**UNDECIDED, "status": status})
    findings = [
        validation_checks.baselines_fail_as_recorded(baselines((False, None)), COUNTING, LIMITS),
        validation_checks.reference_fixes_pass(baselines((True, status)), COUNTING, LIMITS),
        validation_checks.undecided_share(undecided, LIMITS),
    ]
    for found, setting in zip(findings, ("untrusted", "untrusted", "undecided"), strict=True):
        assert not found.passed and "\n" not in found.message
        assert found.message.endswith(f", or raise checks.max_{setting}_share")
    for found in findings[1:]:
        assert ("run again" in found.message) == (status in RETRIED)
    assert "--fresh" in validation_checks.funnel_is_monotone(outcomes({"compiled": False})).message
    assert "its own config" in validation_checks.one_fidelity(outcomes({}, {"fidelity": "static"})).message


def test_an_excluded_problem_closes_no_gate() -> None:
    excluded = pl.LazyFrame({"oid": ["p0", "p1"], "excluded": [False, True]})
    rows = baselines((True, "passed"), (False, "failed"))
    assert validation_checks.baselines_fail_as_recorded(rows, excluded, LIMITS).passed
    assert validation_checks.reference_fixes_pass(rows, excluded, LIMITS).passed


def test_what_a_person_ruled_is_not_held_against_validators() -> None:
    ruled = {"passed": True, "measured": False, "ruling": "passed", "compiled": False}
    assert validation_checks.funnel_is_monotone(outcomes(ruled)).passed
    decided = UNDECIDED | {"passed": True, "measured": None, "ruling": "passed"}
    assert validation_checks.undecided_share(outcomes(decided), LIMITS).figures["undecided"] == 0
    doubted = {"passed": None, "measured": True, "ruling": "undecided", "diagnostics": "said"}
    assert validation_checks.undecided_share(outcomes(doubted), LIMITS).figures["undecided"] == 0


def test_rulings_that_are_not_applied_are_named() -> None:
    row = {"line": 1, "model": "m", "tier": "T0", "oid": "a", "iteration_id": "1", "applied": True, "why_not": None}
    assert validation_checks.rulings_applied(pl.LazyFrame([row])).passed
    refused = dict.fromkeys(row) | {"line": 7, "applied": False, "why_not": "it is not JSON"}
    changed = row | {"line": 2, "applied": False, "why_not": "the attempt has changed since"}
    found = validation_checks.rulings_applied(pl.LazyFrame([refused, row, changed]))
    assert not found.passed and not found.error
    assert found.message == (
        "2 of 3 rulings are not applied: line 2 (m T0 a 1): the attempt has changed since; line 7: it is not JSON"
    )


def test_reference_fixes_pass() -> None:
    assert validation_checks.reference_fixes_pass(baselines((True, "passed"), (True, None)), COUNTING, LIMITS).passed
    assert not validation_checks.reference_fixes_pass(
        baselines((True, "passed"), (True, "timeout")), COUNTING, LIMITS
    ).passed


def test_unmodified_problems_at_a_limit_are_named() -> None:
    ends = {"a": ("failed", None), "b": ("timeout", "passed"), "c": ("timeout", None), "d": ("memory_limit", "failed")}
    rows = [{"oid": oid, "baseline_status": said, "reference_status": fix} for oid, (said, fix) in ends.items()]
    checked = [validation_checks.baselines_within_limits(pl.LazyFrame(rows[:end]), COUNTING) for end in (2, 4)]
    assert [(found.passed, found.error) for found in checked] == [(True, False), (False, False)]
    assert "2 of 4 unmodified problems reached a limit (for example c: timeout)" in checked[1].message
    assert "raise validation.limits.memory_mb" in checked[1].message


def test_reports_consistent() -> None:
    assert validation_checks.reports_consistent(outcomes({}, {"consistent": None})).passed
    found = validation_checks.reports_consistent(outcomes({}, {"consistent": False, "diagnostics": "exit 1"}))
    assert not found.passed and "a: exit 1" in found.message


def test_funnel_is_monotone() -> None:
    good = outcomes({}, {"passed": False, "applied": False, "compiled": False}, {"passed": False, "compiled": False})
    found = validation_checks.funnel_is_monotone(good)
    assert found.passed and found.message == "attempted 3, applied 2, compiled 1, passed 1"
    assert not validation_checks.funnel_is_monotone(outcomes({"applied": False})).passed
    assert not validation_checks.funnel_is_monotone(outcomes({"compiled": False})).passed
    assert validation_checks.funnel_is_monotone(outcomes({"compiled": None})).passed, "not every validator can tell"


def test_one_fidelity() -> None:
    assert validation_checks.one_fidelity(outcomes({}, {"model": "n", "fidelity": "static"})).passed
    assert validation_checks.one_fidelity(outcomes({}, {"fidelity": "static", "passed": None})).passed
    back_and_forth = outcomes({}, {}, {"fidelity": "static"}, {}, {"model": "n"})
    assert validation_checks.one_fidelity(back_and_forth).figures["mixed"] == 1
    found = validation_checks.one_fidelity(outcomes({}, {"fidelity": "static"}))
    assert not found.passed and "m T0: full, static" in found.message
    assert "m T0: full, none" in validation_checks.one_fidelity(outcomes({}, {"fidelity": None})).message


def folders(alike: bool, cluster: bool = False) -> CheckResult:
    """Thirty folders below clones/ with four problems each, which pass all or none; alike, or one like the next."""
    rows = [
        {"oid": f"p{place}", "filename": f"clones/f{place // 4}/{place}.tf", "suite": "s", "c": (place // each) % 2}
        for each in [4 if alike else 1]
        for place in range(120)
    ]
    problems = pl.LazyFrame(rows).with_columns(
        cluster=pl.col("filename").str.split("/").list.get(1) if cluster else pl.lit(None, pl.String)
    )
    counts = problems.select("oid", "c", model=pl.lit("m"), tier=pl.lit("T0"), k=1, n=1)
    return metric_checks.units_independent(counts, problems, IntervalSettings())


def test_problems_of_a_folder_that_pass_alike_should_share_a_cluster() -> None:
    found = folders(alike=True)
    assert not found.passed and not found.error and found.figures == {"correlation": 1.0}
    assert "correlation 1.00 within 30 folders, the outermost of 'filename'" in found.message
    assert "'cluster_columns'" in found.message
    assert folders(alike=False).passed and folders(alike=True, cluster=True).passed


def test_problems_without_files_have_no_folder() -> None:
    problems = pl.LazyFrame({"oid": ["a"], "filename": None, "suite": "s", "cluster": None})
    counts = pl.LazyFrame({"oid": ["a"], "model": "m", "tier": "T0", "k": 1, "n": 1, "c": 1})
    nothing = problems.cast({"filename": pl.String, "cluster": pl.String})
    assert metric_checks.units_independent(counts, nothing, IntervalSettings()).passed
