"""Why attempts fail: reasons, and fingerprints that are the same for failures alike."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.metrics.failures import MOST_CHARACTERS, failures, fingerprint, reason
from touchstone.validation.recorded import recorded_outcomes

CODE = "still there: error: test did not report: t; new: error: not collected: t.py: NameError: name 'x' is not defined"


def mode_of(diagnostics: str) -> str | None:
    line = reason(pl.lit(diagnostics, pl.String))
    return pl.select(fingerprint(line)).item()


def outcomes(*said: str | None, passed: bool | None = False) -> pl.LazyFrame:
    rows = [("m", "T0", "p", str(place), passed, each) for place, each in enumerate(said)]
    keys = ["model", "tier", "oid", "iteration_id"]
    schema = dict.fromkeys(keys, pl.String) | {"passed": pl.Boolean, "diagnostics": pl.String}
    return pl.LazyFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("said", "mode"),
    [
        (
            "still there: error: test failed: test_a: AssertionError: assert [1, 2] == [1]\n  diff",
            "test failed: assert … == …",
        ),
        ("new: error: test failed: a::b: assert f(3) is None", "test failed: assert … is …"),
        (CODE, "not collected: NameError: name '…' is not defined"),
        (
            'error: Unsupported argument (net/main.tf:14): An argument named "a" is not expected.',
            "Unsupported argument",
        ),
        ("error: test failed: pkg/TestLogin", "test failed: path"),
        ("error: test failed: test_login", "test failed: test_login"),
        ("used more than 3 s of CPU time", "used more than # s of CPU time"),
        ("<lru.Cache object at 0x7f5bb6e10950> in /tmp/tmpab12/work.py:7", "<lru.Cache object at #> in path"),
        ("C:\\Temp\\x.txt: 5.5e-3 at 2f1c9e0a-0000-4000-8000-1234567890ab", "path: # at #"),
        ("KeyError: {'a': [1, (2, 3)]}", "KeyError: …"),
        ("still there: error: test did not report: test_a", "test did not report: test_a"),
        ("\n  \n", None),
    ],
)
def test_what_varies_is_left_out(said: str, mode: str | None) -> None:
    assert mode_of(said) == mode


@given(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.from_regex(r"[a-z]{1,8}(/[a-z_]{1,8}){1,3}\.py", fullmatch=True),
)
def test_numbers_and_paths_do_not_matter(whole: int, number: float, path: str) -> None:
    assert mode_of(f"gave {whole} and {number} in {path}:{abs(whole)}") == "gave # and # in path"


# Python calls the separators of ASCII white space, Polars does not.
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x1c\x1d\x1e\x1f")), st.randoms())
def test_any_text_has_a_bounded_mode_that_does_not_depend_on_the_order_of_rows(said: str, random: object) -> None:
    lines = [said, "a 1", "a 2", "b", said * 2]
    table = failures(outcomes(*lines)).collect()
    assert table.equals(failures(outcomes(*reversed(lines))).collect())
    assert table["fingerprint"].str.len_chars().max() <= MOST_CHARACTERS
    assert table["attempts"].sum() == 3 + 2 * bool(said.strip())


def test_each_failed_attempt_counts_once_and_others_do_not() -> None:
    table = failures(outcomes("a 1", "a 2", None, "b")).collect()
    assert table.select("fingerprint", "attempts", "example").rows() == [("a #", 2, "a 1"), ("b", 1, "b")]
    for undecided in (True, None):
        assert failures(outcomes("a 1", passed=undecided)).collect().is_empty()


def test_recorded_outcomes_take_their_reason_from_an_error_or_a_class() -> None:
    given = {"passed": [False, False, False, True], "classification": ["fail", "Timeout", "fail", "pass"]}
    columns = {name: ["x"] * 4 for name in ("model", "tier", "oid", "iteration_id")} | given
    columns |= {"error": ["boom", None, None, "noise"]}
    empty = [pl.lit(None).alias(name) for name in ("compiled", "tests_passed", "tests_failed", "lint_warnings")]
    said = recorded_outcomes(pl.LazyFrame(columns).with_columns(empty)).collect()["diagnostics"].to_list()
    assert said == ["boom", "Timeout", None, None]
