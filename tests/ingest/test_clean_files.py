"""The fast path gives what the careful reader gives, or leaves the file to it."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import more_examples, nightly_but
from touchstone.ingest.attempts import open_fixes, read_fixes, sort_attempts
from touchstone.ingest.clean_files import clean_batches, count_clean_file, read_clean_files
from touchstone.metrics.pass_at_k import count_outcomes
from touchstone.storage.batches import blocks

HEADER = "oid,iteration_id,plausible_fix\n"
PROBLEMS = pl.LazyFrame({"oid": ["a", "b", "c"], "suite": ["s", "t", "s"]})


def write(folder: Path, **files: str) -> dict[str, Path]:
    folder.mkdir(exist_ok=True)
    paths = {model: folder / f"{model}_fixes.csv" for model in files}
    for model, text in files.items():
        paths[model].write_bytes(text.encode())
    return paths


def read_fast(paths: dict[str, Path], key: str = "oid") -> dict[str, pl.DataFrame]:
    """The attempts of each clean file."""
    tables = {model: open_fixes(path, key) for model, path in paths.items()}
    found: dict[str, pl.DataFrame] = {}
    for batch in clean_batches(tables):
        attempts = read_clean_files(batch, PROBLEMS, key)
        found |= {model: rows for model, rows in blocks(attempts, batch).items() if rows.height}
    return found


def assert_as_the_careful_reader(paths: dict[str, Path], key: str = "oid") -> dict[str, pl.DataFrame]:
    """Every file that is taken has no refused row, and the same attempts in the same order."""
    found = read_fast(paths, key)
    for model, attempts in found.items():
        careful = read_fixes(paths[model], model, PROBLEMS, paths[model].with_suffix(".scratch"), key)
        assert careful.quarantine.is_empty()
        assert careful.rows == attempts.height
        expected = sort_attempts(careful.attempts).collect()
        assert attempts.schema == expected.schema
        assert attempts.equals(expected)
    return found


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "a,1,true\na,2,false\nb,1,true\n",
        HEADER + "b,10,True\nb,9,False\na,2,1\na,1,0",
        HEADER + "a,x,yes\na,2,no\na,01,\na,1,1.0\n",
        "\ufeff" + HEADER.replace("\n", "\r\n") + "a,1,TRUE\r\nb,1,FALSE\r\n",
        "note,tier,suite,oid,iteration_id,passed,model\nn,T1,u,a,1,t,z\n,,,a,1,f,\nü,T1,,b,1,,z\n",
        "oid,iteration_id,classification,plausible_fix\na,1,Timeout,false\na,2,pass,true\na,3,,\n",
        "oid,iteration_id,passed,compiled,tests_passed,tests_failed,lint_warnings\na,1,,true,3,0,2.0\na,2,,false,,,\n",
        "oid,iteration_id,fixed_code,start_time,end_time,cost_usd\na,1,x = 1,0,2.5,0.1\nb,1,,2025-01-01,,\n"
        "b,2,y,2025-01-01T00:00:00Z,2025-01-01 00:00:01.5,\n".replace("b,1,,2025-01-01,,\n", ""),
        "oid,iteration_id,passed,__x,*,input_tokens\na,1,1,u,v,7\n",
    ],
)
def test_clean_files_are_taken_as_the_careful_reader_takes_them(tmp_path: Path, text: str) -> None:
    assert set(assert_as_the_careful_reader(write(tmp_path, m=text))) == {"m"}


def test_another_column_may_name_the_problem(tmp_path: Path) -> None:
    paths = write(tmp_path, m="task,iteration_id,passed,oid\na,1,true,7\nb,1,false,8\n")
    assert set(assert_as_the_careful_reader(paths, "task")) == {"m"}


UNUSUAL = [
    "a,1,true",
    "a,1,false",
    "zz,1,true",
    ",1,true",
    "a,,true",
    "a,3,maybe",
    "a,3",
    "a,3,true,x",
    'a,"3",true',
    "a" * 300 + ",1,true",
    "",
    "a,3, true",
    "a,3,tRuE",
]


@pytest.mark.parametrize("rows", nightly_but([UNUSUAL], [UNUSUAL, *([row] for row in UNUSUAL)]))
def test_a_file_with_anything_unusual_is_left_to_the_careful_reader_alone(tmp_path: Path, rows: list[str]) -> None:
    clean = HEADER + "a,1,true\na,2,false\nb,1,true\n"
    unusual = {f"unusual{place}": f"{clean}{row}\n" for place, row in enumerate(rows)}
    paths = write(tmp_path, clean=clean, **unusual, other="note," + clean.replace("\n", "\nn,", 3))
    assert set(read_fast(paths)) == {"clean", "other"}
    assert set(assert_as_the_careful_reader(paths)) == {"clean", "other"}


def test_too_long_and_too_short_rows_that_make_up_for_each_other(tmp_path: Path) -> None:
    paths = write(tmp_path, m=HEADER + "a,1,true,x\na,2\n")
    assert open_fixes(paths["m"]).plain
    assert not read_fast(paths)


def test_files_without_rows_are_left_to_the_careful_reader(tmp_path: Path) -> None:
    assert not read_fast(write(tmp_path, m=HEADER))


def test_the_name_of_a_folder_may_have_any_characters(tmp_path: Path) -> None:
    paths = write(tmp_path / "ü *[a] %20?", m=HEADER + "a,1,true\n", n=HEADER + "b,1,true\n")
    assert set(assert_as_the_careful_reader(paths)) == {"m", "n"}


def test_files_with_other_columns_are_read_apart_and_all_are_read(tmp_path: Path) -> None:
    rows = {f"m{place}": HEADER + f"a,{place},true\nb,1,false\n" for place in range(120)}
    rows["x"] = "oid,iteration_id,passed\na,1,true\n"
    found = read_fast(write(tmp_path, **rows))
    expected = {f"m{place}": [str(place), "1"] for place in range(120)} | {"x": ["1"]}
    assert {model: attempts["iteration_id"].to_list() for model, attempts in found.items()} == expected


def count(path: Path) -> pl.DataFrame | None:
    """The counts of a file, which are those of the careful reader if there are any."""
    counts = count_clean_file(open_fixes(path), "m", PROBLEMS)
    if counts is not None:
        careful = read_fixes(path, "m", PROBLEMS, path.with_suffix(".scratch"))
        assert careful.quarantine.is_empty()
        expected = count_outcomes(careful.attempts).sort("oid").collect()
        assert counts.sort("oid").select(expected.columns).equals(expected)
    return counts


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (HEADER + "b,1,True\na,200,False\na,3,\na,0,true\n", True),
        ("note,oid,iteration_id,passed,input_tokens\nn,a,1,true,7\n,b,9,FALSE,\n", True),
        ("oid,iteration_id,passed,input_tokens\na,1,true,7\na,2,true,many\n", False),
        ("oid,iteration_id,passed,classification\na,1,true,timeout\n", False),
        (HEADER + "a,1,true\na,01,true\n", False),
        (HEADER + "a,5,true\na,5,true\na,6,true\na,8,true\n", False),
        (HEADER + "a,-1,true\n", False),
        *((HEADER + f"a,1,true\n{row}\n", row == "a,3,tRuE") for row in UNUSUAL),
    ],
)
def test_usual_files_are_counted_without_keeping_rows(tmp_path: Path, text: str, counted: bool) -> None:
    assert (count(write(tmp_path, m=text)["m"]) is not None) == counted


CELLS = st.tuples(
    st.sampled_from(["a", "b", "c", "zz", ""]),
    st.integers(0, 12).map(str) | st.sampled_from(["01", "x", " 1", "9223372036854775808", ""]),
    st.sampled_from(["True", "False", "true", "0", "1", "yes", "2", " true", "tRuE", ""]),
    st.sampled_from(["T0", "T1", ""]),
)


@more_examples
@given(st.lists(CELLS, max_size=12), st.lists(CELLS, max_size=12), st.booleans())
def test_agrees_with_the_careful_reader_or_cannot_say(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], more: list[tuple[str, ...]], ordered: bool
) -> None:
    texts = [
        "oid,iteration_id,plausible_fix,tier\n" + "".join(",".join(row) + "\n" for row in some)
        for some in (sorted(rows) if ordered else rows, more)
    ]
    assert_as_the_careful_reader(write(tmp_path_factory.mktemp("fast"), m=texts[0], n=texts[1]))


@more_examples
@given(st.lists(st.tuples(*(st.sampled_from(cells) for cells in ("abcz", "0123", ["True", "false", ""]))), max_size=9))
def test_counts_agree_with_the_careful_reader(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    text = HEADER + "".join(",".join(row) + "\n" for row in rows)
    counts = count(write(tmp_path_factory.mktemp("counts"), m=text)["m"])
    keys = [row[:2] for row in rows]
    assert (counts is not None) == (len(set(keys)) == len(keys) and "z" not in dict(keys))
