"""Reading fixes files: what is accepted, what is refused, and in which words. One test per kind of trouble."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import nightly_but
from touchstone.errors import InputFileError
from touchstone.ingest.attempts import IngestedAttempts, read_fixes, sort_attempts

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


def test_a_clean_file(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "b,1,False\na,2,True\na,1,true\n")
    assert accepted(result) == [("a", "1", True), ("a", "2", True), ("b", "1", False)]
    assert (result.rows, result.accepted, result.quarantine.height) == (3, 3, 0)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match=r"gone_fixes\.csv: no such file"):
        read_fixes(tmp_path / "gone_fixes.csv", "gone", problems(), tmp_path / "s")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="is a folder"):
        read_fixes(tmp_path, "m", problems(), tmp_path / "s")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((empty, r"m_fixes\.csv: the file is empty") for empty in (b"", b"\n", b"\xef\xbb\xbf", b" , ,\n")),
        (b"key,plausible_fix\na,1\n", r"missing column oid \(found: key, plausible_fix\)"),
        (b"oid,iteration_id,note\na,1,x\n", "no outcome and no fix; it needs a column plausible_fix or passed"),
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


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + HEADER + "ü,1,true\n",
        HEADER.replace("\n", "\r\n") + "ü,1,true\r\n",
        HEADER + "ü,1,true",
        " oid ,iteration_id, plausible_fix\nü,1,true\n",
    ],
    ids=["byte order mark", "Windows line ends", "no last line end", "spaces in the header"],
)
def test_spellings_of_the_same_file(tmp_path: Path, content: str) -> None:
    assert accepted(read(tmp_path, content)) == [("ü", "1", True)]


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "a,1,true\n\nb,1,false\n\n")
    assert (result.rows, refused(result)) == (2, [])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,2", "2 cells where the header has 3"),
        ("a,2,true,x", "4 cells where the header has 3"),
        ("a,2,true,", "4 cells where the header has 3"),
    ],
)
def test_ragged_row(tmp_path: Path, row: str, reason: str) -> None:
    result = read(tmp_path, HEADER + f"a,1,true\n{row}\nb,1,false\n")
    assert accepted(result) == [("a", "1", True), ("b", "1", False)]
    assert result.quarantine.row(0) == ("m_fixes.csv", 3, "ragged", reason, row)


def test_a_short_and_a_long_row_do_not_cancel_out(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "a,1,true\na,2\na,3,true,x\nb,1,false\n")
    assert refused(result) == [(3, "ragged"), (4, "ragged")]
    assert len(accepted(result)) == 2


def test_quoted_newline_keeps_line_numbers_right(tmp_path: Path) -> None:
    text = 'oid,iteration_id,plausible_fix,fixed_code\na,1,true,"x\ny, ""z""\n"\nb,1,maybe,q\n'
    result = read(tmp_path, text)
    assert result.attempts.collect()["fixed_code"].to_list() == ['x\ny, "z"\n']
    assert refused(result) == [(5, "bad_boolean")]
    assert result.quarantine["raw"].to_list() == ["b,1,maybe,q"]


def test_malformed_quotes_spoil_only_their_row(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + 'a,1,true\n"b"x,1,true\na,3,true\n')
    assert refused(result) == [(3, "ragged")]
    assert len(accepted(result)) == 2


@pytest.mark.parametrize("word", ["2", "maybe", "None", "nan", "-1", "1.5", "1.00", "null"])
def test_no_boolean_is_guessed(tmp_path: Path, word: str) -> None:
    result = read(tmp_path, HEADER + f"a,1,{word}\nb,1,true\n")
    assert accepted(result) == [("b", "1", True)]
    assert refused(result) == [(2, "bad_boolean")]
    assert f"plausible_fix: '{word}' is not a boolean" in result.quarantine["reason"].item()


def test_a_column_of_booleans_with_gaps_as_pandas_writes_it(tmp_path: Path) -> None:
    import pandas  # here, because every process that collects the tests would load it

    frame = pandas.DataFrame({"oid": ["a", "a", "b"], "iteration_id": [1, 2, 1], "plausible_fix": [1.0, None, 0.0]})
    frame.to_csv(tmp_path / "m_fixes.csv")
    result = read_fixes(tmp_path / "m_fixes.csv", "m", problems(), tmp_path / "scratch.parquet")
    assert accepted(result) == [("a", "1", True), ("a", "2", None), ("b", "1", False)]
    assert result.quarantine.is_empty()


def test_empty_outcome_is_undecided_and_not_false(tmp_path: Path) -> None:
    assert accepted(read(tmp_path, HEADER + "a,1,\na,2,  \nb,1,true\n")) == [
        ("a", "1", None),
        ("a", "2", None),
        ("b", "1", True),
    ]


def test_rows_without_numbers_that_were_appended_to_themselves_count_once(tmp_path: Path) -> None:
    rows = "a,true,x = 1\nb,false,x = 2\n"
    result = read(tmp_path, "oid,passed,fixed_code\n" + rows * 2)
    assert accepted(result) == [("a", "1", True), ("b", "1", False)]
    assert result.quarantine.select("line", "kind", "reason").rows() == [
        (4, "duplicate", "repeats line 2: the file was appended to itself"),
        (5, "duplicate", "repeats line 3: the file was appended to itself"),
    ]


@pytest.mark.parametrize("rows", ["a,true,\nb,false,\n" * 2, "a,true,x = 1\n" * 2, "a,1,x\nb,1,y\na,1,x\nb,1,z\n"])
def test_equal_rows_without_numbers_are_attempts_unless_the_whole_file_is_repeated(tmp_path: Path, rows: str) -> None:
    result = read(tmp_path, "oid,passed,fixed_code\n" + rows)
    assert result.quarantine.is_empty() and result.accepted == rows.count("\n")


def test_exact_duplicate_keeps_the_first(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "a,1,true\nb,1,false\na,1,true\na,1,true\n")
    assert accepted(result) == [("a", "1", True), ("b", "1", False)]
    assert refused(result) == [(4, "duplicate"), (5, "duplicate")]
    assert result.quarantine["reason"].to_list() == ["repeats line 2", "repeats line 2"]


def test_conflicting_rows_all_go(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "a,1,true\nb,1,false\na,1,false\n")
    assert accepted(result) == [("b", "1", False)]
    assert refused(result) == [(2, "conflict"), (4, "conflict")]
    assert "same (tier, oid, iteration_id) as line 4" in result.quarantine["reason"][0]


def test_rows_that_differ_only_in_an_extra_column_conflict(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,plausible_fix,note\na,1,true,x\na,1,true,y\n")
    assert [kind for _, kind in refused(result)] == ["conflict", "conflict"]


def test_the_same_iteration_in_two_tiers_is_no_duplicate(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,plausible_fix,tier\na,1,true,T0\na,1,true,T1\n")
    assert result.attempts.collect()["tier"].to_list() == ["T0", "T1"]


def test_unknown_oid(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER + "a,1,true\nzz,1,true\n")
    assert accepted(result) == [("a", "1", True)]
    assert result.quarantine.row(0)[1:4] == (3, "unknown_oid", "the oid 'zz' is not in the problems file")


def test_ids_stay_text(tmp_path: Path) -> None:
    rows = "001,1,true\n1,1,false\n3030786330e5,1,true\nNA,1,true\n1,01,true\n"
    assert accepted(read(tmp_path, HEADER + rows)) == [
        ("001", "1", True),
        ("1", "01", True),
        ("1", "1", False),
        ("3030786330e5", "1", True),
        ("NA", "1", True),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (",1,true", "the oid is missing"),
        ("a,,true", "the iteration_id is missing"),
        ("x" * 201 + ",1,true", "the oid has 201 characters; at most 200 are allowed"),
    ],
)
def test_missing_or_over_long_id(tmp_path: Path, row: str, reason: str) -> None:
    result = read(tmp_path, HEADER + row + "\n")
    assert refused(result) == [(2, "bad_id")]
    assert result.quarantine["reason"].item() == reason


def test_a_file_with_no_rows(tmp_path: Path) -> None:
    result = read(tmp_path, HEADER)
    assert (result.rows, result.accepted, accepted(result)) == (0, 0, [])


@pytest.mark.parametrize("cell", ["x", "-1", "nan", "inf", "1,5"])
def test_bad_number(tmp_path: Path, cell: str) -> None:
    result = read(tmp_path, f'oid,iteration_id,plausible_fix,cost_usd\na,1,true,"{cell}"\nb,1,true,0.5\n')
    assert refused(result) == [(2, "bad_number")]
    assert result.quarantine["reason"].item() == f"cost_usd: '{cell}' is not a number of at least 0"


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


def test_a_time_that_is_none(tmp_path: Path) -> None:
    result = read(tmp_path, "oid,iteration_id,passed,start_time,end_time\na,1,1,yesterday,2026-01-02\n")
    assert refused(result) == [(2, "bad_time")]


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
