"""Reading fixes files: what is accepted, what is refused, and in which words. One test per kind of trouble."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.errors import InputFileError
from touchstone.ingest.attempts import IngestedAttempts, read_fixes, sort_attempts
from touchstone.ingest.quarantine import SCHEMA
from touchstone.tables import TABLES

HEADER = "oid,iteration_id,plausible_fix\n"
KNOWN = ("a", "b", "001", "1", "3030786330e5", "NA", "ü")


def problems() -> pl.LazyFrame:
    return pl.LazyFrame({"oid": KNOWN, "suite": ["s"] * len(KNOWN)})


def read(tmp_path: Path, text: str | bytes, model: str = "m") -> IngestedAttempts:
    path = tmp_path / f"{model}_fixes.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    read = read_fixes(path, model, problems(), tmp_path / "scratch.parquet")
    return replace(read, attempts=sort_attempts(read.attempts))


def accepted(result: IngestedAttempts) -> list[tuple[str, str, bool | None]]:
    return list(sort_attempts(result.attempts).select("oid", "iteration_id", "passed").collect().iter_rows())


def refused(result: IngestedAttempts) -> list[tuple[int, str]]:
    return list(result.quarantine.select("line", "kind").iter_rows())


BOOLEANS = {
    True: ("true", "TRUE", "1", "yes", "Yes", "t", "Y", " true ", "\tT", "1.0"),
    False: ("false", "False", "0", "no", "NO", "f", "n", " false", "0.0"),
    None: ("", "  "),
}
NO_BOOLEANS = ("2", "maybe", "None", "nan", "-1", "1.5", "1.00", "null")
NO_COSTS = ("x", "-1", "nan", "inf", "1,5")
NO_BOOLEAN = "plausible_fix: {!r} is not a boolean (expected true/false, 1/0, yes/no, t/f, y/n or pass/fail)"
CONFLICT = "same (tier, oid, iteration_id) as line {} but different content; all 2 rows are refused"
UNKNOWN = "the oid {!r} is not in the problems file"
OPPOSITE = "classification is {!r} but {} says the opposite; only the class 'pass' is a pass"
APPENDED = "repeats line {}: the file was appended to itself"
# The text of a file after the usual header, or a whole file; the accepted rows; the refused ones.
ROWS = {
    "clean": ("b,1,False\na,2,True\na,1,true\n", [("a", "1", True), ("a", "2", True), ("b", "1", False)], []),
    "no rows": ("", [], []),
    "blank lines": ("a,1,true\n\nb,1,false\n\n", [("a", "1", True), ("b", "1", False)], []),
    "no last line end": ("ü,1,true", [("ü", "1", True)], []),
    "byte order mark": ("\ufeff" + HEADER + "ü,1,true\n", [("ü", "1", True)], []),
    "Windows line ends": (HEADER.replace("\n", "\r\n") + "ü,1,true\r\n", [("ü", "1", True)], []),
    "spaces in the header": (" oid ,iteration_id, plausible_fix\nü,1,true\n", [("ü", "1", True)], []),
    "short": ("a,1,true\na,2\n", [("a", "1", True)], [(3, "ragged", "2 cells where the header has 3")]),
    "long": ("a,2,true,x\nb,1,0\n", [("b", "1", False)], [(2, "ragged", "4 cells where the header has 3")]),
    "one empty cell more": (
        "a,2,true,\nb,1,0\n",
        [("b", "1", False)],
        [(2, "ragged", "4 cells where the header has 3")],
    ),
    "a short and a long row do not cancel out": (
        "a,1,true\na,2\na,3,true,x\nb,1,false\n",
        [("a", "1", True), ("b", "1", False)],
        [(3, "ragged", "2 cells where the header has 3"), (4, "ragged", "4 cells where the header has 3")],
    ),
    "malformed quotes": (
        'a,1,true\n"b"x,1,true\na,3,true\n',
        [("a", "1", True), ("a", "3", True)],
        [(3, "ragged", "malformed quotes (',' expected after '\"')")],
    ),
    **{
        f"words that are {outcome}": (
            "".join(f"a,{10 + place},{word}\n" for place, word in enumerate(words)),
            [("a", f"{10 + place}", outcome) for place in range(len(words))],
            [],
        )
        for outcome, words in BOOLEANS.items()
    },
    "words that are no boolean": (
        "".join(f"a,{place},{word}\n" for place, word in enumerate(NO_BOOLEANS)) + "b,1,true\n",
        [("b", "1", True)],
        [(2 + place, "bad_boolean", NO_BOOLEAN.format(word)) for place, word in enumerate(NO_BOOLEANS)],
    ),
    "without numbers, appended to itself": (
        "oid,passed,fixed_code\n" + "a,true,x = 1\nb,false,x = 2\n" * 2,
        [("a", "1", True), ("b", "1", False)],
        [(4, "duplicate", APPENDED.format(2)), (5, "duplicate", APPENDED.format(3))],
    ),
    "the first of equal rows stays": (
        "a,1,true\nb,1,false\na,1,true\na,1,true\n",
        [("a", "1", True), ("b", "1", False)],
        [(4, "duplicate", "repeats line 2"), (5, "duplicate", "repeats line 2")],
    ),
    "conflicting rows all go": (
        "a,1,true\nb,1,false\na,1,false\n",
        [("b", "1", False)],
        [(2, "conflict", CONFLICT.format(4)), (4, "conflict", CONFLICT.format(2))],
    ),
    "rows that differ in an extra column conflict": (
        "oid,iteration_id,plausible_fix,note\na,1,true,x\na,1,true,y\n",
        [],
        [(2, "conflict", CONFLICT.format(3)), (3, "conflict", CONFLICT.format(2))],
    ),
    "an unknown problem": ("zz,1,true\n", [], [(2, "unknown_oid", UNKNOWN.format("zz"))]),
    "ids stay text": (
        "001,1,true\n1,1,false\n3030786330e5,1,true\nNA,1,true\n1,01,true\n",
        [("001", "1", True), ("1", "01", True), ("1", "1", False), ("3030786330e5", "1", True), ("NA", "1", True)],
        [],
    ),
    "no id": (
        ",1,true\na,,true\n",
        [],
        [(2, "bad_id", "the oid is missing"), (3, "bad_id", "the iteration_id is missing")],
    ),
    "ids are not trimmed": (" a ,1,1\n", [], [(2, "unknown_oid", UNKNOWN.format(" a "))]),
    "an id of 200 characters": ("x" * 200 + ",1,1\n", [], [(2, "unknown_oid", UNKNOWN.format("x" * 200))]),
    "a long id": ("x" * 201 + ",1,1\n", [], [(2, "bad_id", "the oid has 201 characters; at most 200 are allowed")]),
    "costs that are no numbers": (
        "oid,iteration_id,plausible_fix,cost_usd\nb,1,true,0.5\n"
        + "".join(f'a,{place},true,"{cell}"\n' for place, cell in enumerate(NO_COSTS)),
        [("b", "1", True)],
        [
            (3 + place, "bad_number", f"cost_usd: {cell!r} is not a number of at least 0")
            for place, cell in enumerate(NO_COSTS)
        ],
    ),
    "the first rule that refuses a row gives the reason": (",1,maybe\n", [], [(2, "bad_id", "the oid is missing")]),
    "an unquoted and a quoted row": (
        'a,1,maybe\n,1,true\nb,1,2,3\n"b",2,0\n',
        [("b", "2", False)],
        [
            (2, "bad_boolean", NO_BOOLEAN.format("maybe")),
            (3, "bad_id", "the oid is missing"),
            (4, "ragged", "4 cells where the header has 3"),
        ],
    ),
    "is_fixed alone": (
        "oid,iteration_id,is_fixed\na,1,True\na,2,False\nb,1,\n",
        [("a", "1", True), ("a", "2", False), ("b", "1", None)],
        [],
    ),
    "counts of tests are no outcomes": (
        "oid,iteration_id,passed,failed\na,1,1,4\na,2,1,0\na,3,0,6\nb,1,true,false\n",
        [("a", "2", True), ("a", "3", False), ("b", "1", True)],
        [(2, "contradiction", "passed is '1' beside failures in 'failed'; if both count tests, neither is an outcome")],
    ),
    "is_fixed beside an outcome": ("oid,iteration_id,passed,is_fixed\na,1,0,True\n", [("a", "1", False)], []),
    "a class where no outcome is stated": (
        "oid,iteration_id,passed,classification\na,1,,pass\na,2,,refusal\nb,1,,\n",
        [("a", "1", True), ("a", "2", False), ("b", "1", None)],
        [],
    ),
    "a class alone": (
        "oid,iteration_id,classification\na,1,pass\na,2,hallucination\nb,1,\n",
        [("a", "1", True), ("a", "2", False), ("b", "1", None)],
        [],
    ),
    "a class that is the primary of an object": (
        'oid,iteration_id,classification\na,1,"{""primary"": ""pass"", ""x"": 1}"\na,2,"{\'primary\': \'Refusal\'}"\n',
        [("a", "1", True), ("a", "2", False)],
        [],
    ),
    **{
        f"{stated} against its class": (
            f"oid,iteration_id,{stated},classification\na,1,true,fail\na,2,false,pass\na,3,true,oops\n"
            "b,1,true,Pass\nb,2,false,timeout\nb,3,true,\n",
            [("b", "1", True), ("b", "2", False), ("b", "3", True)],
            [
                (line, "contradiction", OPPOSITE.format(word, stated))
                for line, word in enumerate(("fail", "pass", "oops"), start=2)
            ],
        )
        for stated in ("passed", "plausible_fix")
    },
    "outcomes that compiling and tests imply": (
        "oid,iteration_id,compiled,tests_passed,tests_failed\n"
        "a,1,1,3,0\na,2,1,2,1\na,3,1,0,0\na,4,0,,\na,5,1,,\na,6,,3,0\n",
        [("a", str(place), each) for place, each in enumerate((True, False, False, False, None, None), start=1)],
        [],
    ),
    "a class wins over what compiling and tests imply": (
        "oid,iteration_id,compiled,tests_passed,tests_failed,classification\na,1,1,3,0,policy_violation\na,2,1,3,0,\n",
        [("a", "1", False), ("a", "2", True)],
        [],
    ),
    "a stated outcome wins over an implied one": (
        "oid,iteration_id,plausible_fix,compiled,tests_passed,tests_failed\na,1,false,1,3,0\na,2,,1,3,0\n",
        [("a", "1", False), ("a", "2", True)],
        [],
    ),
    "two outcomes that contradict each other": (
        "oid,iteration_id,plausible_fix,passed\na,1,true,false\na,2,,true\nb,1,no,0\n",
        [("a", "2", True), ("b", "1", False)],
        [(2, "contradiction", "passed is 'false' and plausible_fix says the opposite")],
    ),
    "no time": (
        "oid,iteration_id,passed,start_time,end_time\na,1,1,yesterday,2026-01-02\n",
        [],
        [(2, "bad_time", "start_time: 'yesterday' is not a time (expected ISO 8601 or seconds)")],
    ),
}


@pytest.mark.parametrize(("text", "rows", "refusals"), ROWS.values(), ids=ROWS)
def test_rows(tmp_path: Path, text: str, rows: list[object], refusals: list[object]) -> None:
    result = read(tmp_path, text if "oid" in text.partition("\n")[0] else HEADER + text)
    assert accepted(result) == rows
    assert result.quarantine.select("line", "kind", "reason").rows() == refusals
    assert (result.rows, result.accepted) == (len(rows) + len(refusals), len(rows))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((empty, r"m_fixes\.csv: the file is empty") for empty in (b"", b"\n", b"\xef\xbb\xbf", b" , ,\n")),
        (b"key,plausible_fix\na,1\n", r"missing column oid \(found: key, plausible_fix\)"),
        (
            b"oid,iteration_id,note\na,1,x\n",
            "it needs a column passed, plausible_fix, resolved or success, or a fix",
        ),
        (b"oid,iteration_id,plausible_fix,oid\na,1,1,a\n", "the column 'oid' appears twice"),
        (HEADER.encode() + b"a,1,\xc3", "not UTF-8"),
        (HEADER.encode() + b"\xc3\xbc\xe9,1,true\n", "not UTF-8"),
        (HEADER.encode() + b"\x81,1,true\n", "not UTF-8"),
        ((HEADER + "a,1,true\n").encode("utf-16"), "the file is UTF-16; save it as UTF-8"),
        (HEADER.encode() + b'a,1,true\nb,"1,true\na,3,true\n', "the quote opened at line 3 is never closed"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputFileError, match=message):
        read(tmp_path, content)
    for path, reason in ((tmp_path / "gone_fixes.csv", r"gone_fixes\.csv: no such file"), (tmp_path, "is a folder")):
        with pytest.raises(InputFileError, match=reason):
            read_fixes(path, "m", problems(), tmp_path / "s")


def test_quoted_newline_keeps_line_numbers_right(tmp_path: Path) -> None:
    text = 'oid,iteration_id,plausible_fix,fixed_code\na,1,true,"x\ny, ""z""\n"\nb,1,maybe,q\n'
    result = read(tmp_path, text)
    assert result.attempts.collect()["fixed_code"].to_list() == ['x\ny, "z"\n']
    assert refused(result) == [(5, "bad_boolean")]
    assert result.quarantine["raw"].to_list() == ["b,1,maybe,q"]


def test_a_column_of_booleans_with_gaps_as_pandas_writes_it(tmp_path: Path) -> None:
    import pandas  # here, because every process that collects the tests would load it

    frame = pandas.DataFrame({"oid": ["a", "a", "b"], "iteration_id": [1, 2, 1], "plausible_fix": [1.0, None, 0.0]})
    frame.to_csv(tmp_path / "m_fixes.csv")
    result = read_fixes(tmp_path / "m_fixes.csv", "m", problems(), tmp_path / "scratch.parquet")
    assert accepted(result) == [("a", "1", True), ("a", "2", None), ("b", "1", False)]
    assert result.quarantine.is_empty()


@pytest.mark.parametrize("rows", ["a,true,\nb,false,\n" * 2, "a,true,x = 1\n" * 2, "a,1,x\nb,1,y\na,1,x\nb,1,z\n"])
def test_equal_rows_without_numbers_are_attempts_unless_the_whole_file_is_repeated(tmp_path: Path, rows: str) -> None:
    result = read(tmp_path, "oid,passed,fixed_code\n" + rows)
    assert result.quarantine.is_empty() and result.accepted == rows.count("\n")


@pytest.mark.parametrize(
    ("header", "rows", "reason"),
    [
        (
            "oid,Prompt Type,passed",
            "a,few,1\na,zero,0\nb,few,1\n",
            "'Prompt Type' differs between the rows of a problem",
        ),
        ("oid,harness,passed", "a,x,1\na,y,0\n", "'harness' differs between the rows of a problem"),
        ("oid,dataset,passed", "1,math,1\n1,code,0\n", "'dataset' differs between the rows of a problem"),
        ("oid,suite,passed", "1,math,1\n1,code,0\n", "'suite' differs between the rows of a problem"),
        ("oid,model_name,passed", "a,x,1\na,y,0\n", "'model_name' differs between the rows of a problem"),
        ("oid,method,passed", "a,x,1\nb,y,0\n", None),
        ("oid,method,passed", "a,x,1\na,x,0\na,,0\n", None),
        ("oid,tier,method,passed", "a,1,x,1\na,2,y,0\n", None),
        ("oid,iteration_id,method,passed", "a,1,x,1\na,2,y,0\n", None),
        ("oid,seed,passed", "a,1,1\na,2,0\n", None),
    ],
)
def test_rows_without_numbers_that_may_be_of_several_models_are_refused(
    tmp_path: Path, header: str, rows: str, reason: str | None
) -> None:
    if reason is None:
        assert read(tmp_path, f"{header}\n{rows}").accepted == rows.count("\n")
        return
    with pytest.raises(
        InputFileError, match=f"no iteration_id, and {reason}, which may be of several models or problems"
    ):
        read(tmp_path, f"{header}\n{rows}")


def test_rows_of_one_attempt_that_may_be_of_several_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="'effort' differs between rows of one attempt; call it model or tier"):
        read(tmp_path, "task,trial,effort,passed\na,1,low,1\na,1,high,0\nb,1,low,1\n")


def test_the_same_iteration_in_two_tiers_is_no_duplicate(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,plausible_fix,tier\na,1,true,T0\na,1,true,T1\n")
    assert result.attempts.collect()["tier"].to_list() == ["T0", "T1"]


def test_counts_are_whole_numbers(tmp_path: Path) -> None:
    header = "oid,iteration_id,plausible_fix,input_tokens\n"
    result = read(tmp_path, header + "a,1,true,12.0\na,2,true,12.5\nb,1,true,\nb,2,true,1e3\n")
    assert result.attempts.collect()["input_tokens"].to_list() == [12, None, 1000]
    assert refused(result) == [(3, "bad_number")]


def test_extra_columns_travel_along_as_text(tmp_path: Path) -> None:
    header = "oid,iteration_id,plausible_fix,temperature,model,llm_name\n"
    attempts = read(tmp_path, header + "a,1,true,0.70,their-name,gpt\n").attempts.collect()
    assert attempts["temperature"].to_list() == ["0.70"]
    assert attempts["model"].to_list() == ["m"]
    assert attempts["input_model"].to_list() == ["their-name"]
    assert attempts["llm_name"].to_list() == ["gpt"]


def test_defaults_for_tier_and_suite(tmp_path: Path) -> None:
    without = read(tmp_path, HEADER + "a,1,true\n").attempts.collect()
    assert without.select("tier", "suite").row(0) == ("T0", "s")
    own = read(tmp_path, "oid,iteration_id,passed,tier,suite\na,1,1,,\nb,1,1,T2,mine\n").attempts.collect()
    assert list(own.select("tier", "suite").iter_rows()) == [("T0", "s"), ("T2", "mine")]


def test_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    rows = [f"{oid},{i},{'true' if i % 3 else 'false'}\n" for oid in ("a", "b", "NA") for i in range(1, 30)]
    forward = read(tmp_path, HEADER + "".join(rows)).attempts.collect()
    backward = read(tmp_path, HEADER + "".join(reversed(rows))).attempts.collect()
    assert forward.equals(backward)
    assert forward.filter(pl.col("oid") == "a")["iteration_id"].to_list() == [str(i) for i in range(1, 30)]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:07.5Z", 2.5),
        ("2026-01-02 03:04:05", "2026-01-02T03:05:05+00:00", 60.0),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:06Z", 1.0),
        ("100", "101.25", 1.25),
        ("101", "100", None),
        ("", "100", None),
    ],
)
def test_duration_from_start_and_end(tmp_path: Path, start: str, end: str, expected: float | None) -> None:
    result = read(tmp_path, f"oid,iteration_id,passed,start_time,end_time\na,1,1,{start},{end}\n")
    assert result.attempts.collect()["duration_seconds"].to_list() == [expected]


def test_another_key_column(tmp_path: Path) -> None:
    path = tmp_path / "m_fixes.csv"
    path.write_text("oid,specific_oid,iteration_id,passed\nsame,a,1,1\nsame,b,1,0\nsame,zz,1,0\n")
    result = read_fixes(path, "m", problems(), tmp_path / "s", "specific_oid")
    assert accepted(result) == [("a", "1", True), ("b", "1", False)]
    assert result.attempts.collect()["input_oid"].to_list() == ["same", "same"]
    assert refused(result) == [(4, "unknown_oid")]


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("cost_usd", "1e19", "cost_usd: '1e19' is too large (at most 1,000,000,000)"),
        ("latency_ms", "1000000001", "latency_ms: '1000000001' is too large (at most 1,000,000,000)"),
        ("duration_seconds", "1e300", "duration_seconds: '1e300' is too large (at most 1,000,000,000)"),
        ("output_tokens", "1e13", "output_tokens: '1e13' is too large (at most 1,000,000,000,000)"),
        ("tests_passed", "9e15", "tests_passed: '9e15' is too large (at most 1,000,000,000,000)"),
    ],
)
def test_an_absurd_amount_is_refused_and_the_largest_allowed_one_is_not(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    text = f"oid,iteration_id,passed,{column}\na,1,1,{cell}\na,2,1,1e9\n"
    result = read(tmp_path, text)
    assert result.quarantine.select("line", "kind", "reason").rows() == [(2, "bad_number", reason)]
    assert result.attempts.select(column).collect().item() == 1e9


def test_a_duration_between_absurd_times_is_unknown(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,passed,start_time,end_time\na,1,1,0,1e12\na,2,1,0,5\n")
    assert result.attempts.select("duration_seconds").collect().to_series().to_list() == [None, 5.0]


# The first two are patterns to Polars, not names.
INTERNAL = [
    "*",
    "^.*$",
    "__line",
    "__broken",
    "__kind",
    "__refused",
    "__offender",
    "__problem_suite",
    "__model",
    "__oid",
]


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("names", nightly_but([INTERNAL], [INTERNAL, *([name] for name in INTERNAL)]))
def test_an_input_column_may_have_the_name_of_an_internal_one(tmp_path: Path, names: list[str], quoted: bool) -> None:
    first, second, third = (",".join(f"{letter}{place}" for place in range(len(names))) for letter in "xyz")
    first = '"' + first.replace(",", '","') + '"' if quoted else first
    header = ",".join(["oid,iteration_id,passed", *names])
    result = read(tmp_path, f"{header}\na,1,1,{first}\nb,1,0,{second}\nnobody,1,0,{third}\n")
    assert accepted(result) == [("a", "1", True), ("b", "1", False)]
    kept = result.attempts.select([f"input_{name}" for name in names]).collect()
    assert kept.rows() == [tuple(f"{letter}{place}" for place in range(len(names))) for letter in "xy"]
    assert refused(result) == [(4, "unknown_oid")]


def test_no_renamed_column_replaces_another(tmp_path: Path) -> None:
    header = "oid,iteration_id,passed,model,input_model,__line,input___line\n"
    attempts = read(tmp_path, header + "a,1,1,theirs,other,3,4\n").attempts.collect()
    assert attempts.select("model", "input_model", "input_input_model").row(0) == ("m", "other", "theirs")
    assert attempts.select("input___line", "input_input___line").row(0) == ("4", "3")


@pytest.mark.parametrize(
    ("oid", "hint"),
    [
        ("07", "; it has '007': zeros were lost or added, keep the ids as text"),
        ("7", "; it has '007': zeros were lost or added, keep the ids as text"),
        ("7.0", "; it has '007': zeros were lost or added, keep the ids as text"),
        ("00042", "; it has '42': zeros were lost or added, keep the ids as text"),
        ("42.0", "; it has '42': zeros were lost or added, keep the ids as text"),
        ("00", "; it has '0': zeros were lost or added, keep the ids as text"),
        ("8", ""),
        ("x7", ""),
    ],
)
def test_lost_zeros_are_hinted_at_and_never_repaired(tmp_path: Path, oid: str, hint: str) -> None:
    path = tmp_path / "m_fixes.csv"
    path.write_text(HEADER + f"{oid},1,true\n007,1,true\n")
    listed = pl.LazyFrame({"oid": ["007", "42", "0", "x"], "suite": ["s"] * 4})
    result = read_fixes(path, "m", listed, tmp_path / "scratch.parquet")
    assert accepted(result) == [("007", "1", True)]
    assert result.quarantine["reason"].to_list() == [f"the oid '{oid}' is not in the problems file{hint}"]


def test_what_polars_writes_after_the_quick_reader_failed_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that fails leaves tasks behind, which write to its file while the careful reader is at work."""
    sink, files = pl.LazyFrame.sink_parquet, list[Path]()

    def noting(frame: pl.LazyFrame, path: Path, **options: Any) -> None:
        files.append(path)
        sink(frame, path, **options)

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", noting)
    found = read(tmp_path, HEADER + "a,1,2,3,4\nb\nb,1,1\n")
    failed, _ = files
    failed.write_bytes(b"PAR1 and the rest, too late")
    assert accepted(found) == [("b", "1", True)]
    assert refused(found) == [(2, "ragged"), (3, "ragged")]


def test_quarantine_rows_have_the_columns_of_the_contract() -> None:
    assert TABLES["quarantine"].dtypes == pl.Schema(SCHEMA)


def test_a_class_that_is_not_known_keeps_its_name_and_its_row(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,passed,classification\na,1,1,PASS\na,2,0,Refusal\nb,1,0, Oops \n")
    assert result.attempts.collect()["classification"].to_list() == ["pass", "refusal", "oops"]
    assert refused(result) == []


def test_a_fix_without_an_outcome_is_undecided(tmp_path: Path) -> None:
    attempts = read(tmp_path, "oid,iteration_id,fixed_code\na,1,x = 1\na,2,x = 1\nb,1,\n").attempts.collect()
    assert attempts["passed"].to_list() == [None, None, None]
    first, same, empty = attempts["fix_sha"].to_list()
    assert first == same and len(first) == 64 and empty is None
