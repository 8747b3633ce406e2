"""The short cut gives what the careful reader gives, or says that it cannot."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.ingest.fast_histogram import fast_histogram
from touchstone.ingest.fixes import open_fixes, read_fixes
from touchstone.ingest.problems import open_problems, read_problems
from touchstone.metrics.pass_at_k import count_outcomes, outcome_histogram

CLEAN = "oid,iteration_id,plausible_fix\na,1,True\na,2,False\nb,1,True\n"
KEYS = ["model", "tier", "cluster", "n", "c"]


def write(tmp_path: Path, problems: str, fixes: str) -> tuple[Path, Path]:
    files = tmp_path / "problems.csv", tmp_path / "m_fixes.csv"
    files[0].write_text(problems)
    files[1].write_text(fixes)
    return files


def quick(files: tuple[Path, Path]) -> tuple[pl.DataFrame, int] | None:
    return fast_histogram(open_problems(files[0]), open_fixes(files[1]), "m")


def careful(files: tuple[Path, Path], tmp_path: Path) -> pl.DataFrame:
    problems = read_problems(files[0], tmp_path / "p").problems.collect().lazy()
    counts = count_outcomes(read_fixes(files[1], "m", problems, tmp_path / "f").attempts)
    return outcome_histogram(counts, problems).collect().sort(KEYS)


def test_a_clean_file_takes_the_short_cut(tmp_path: Path) -> None:
    files = write(tmp_path, "oid,filename\na,x\nb,y\nc,z\n", CLEAN)
    found = quick(files)
    assert found is not None
    histogram, problems = found
    assert problems == 3
    assert histogram.filter(pl.col("n") > 0).select([*KEYS, "problems"]).sort(KEYS).equals(careful(files, tmp_path))


def test_clusters_are_kept_where_they_are_shared(tmp_path: Path) -> None:
    files = write(tmp_path, "oid,filename,project_name\na,x,p\nb,y,p\nc,z,q\n", CLEAN + "c,1,False\n")
    found = quick(files)
    assert found is not None
    assert found[0].select([*KEYS, "problems"]).sort(KEYS).equals(careful(files, tmp_path))
    assert set(found[0]["cluster"]) == {"p", None}


@pytest.mark.parametrize(
    "row",
    [
        "a,1,True",
        "a,1,False",
        "zz,1,True",
        ",1,True",
        "a,,True",
        "a,x,True",
        "a,-1,True",
        "a,100000,True",
        "a,3,maybe",
        "a,3,",
        "a,3",
        "a,3,True,x",
        'a,"3",True',
        "x" * 300 + ",1,True",
        "",
    ],
)
def test_any_doubt_refuses_the_short_cut(tmp_path: Path, row: str) -> None:
    problems = "oid,filename\na,x\nb,y\n" + "x" * 300 + ",z\n"
    assert quick(write(tmp_path, "oid,filename\na,x\nb,y\n", CLEAN + row + "\n")) is None
    assert quick(write(tmp_path, problems, CLEAN)) is None


@pytest.mark.parametrize("extra", ["a,x", "a,q", ",x", "c", "c,"])
def test_doubtful_problems_refuse_the_short_cut(tmp_path: Path, extra: str) -> None:
    assert quick(write(tmp_path, f"oid,filename\na,x\nb,y\n{extra}\n", CLEAN)) is None


def test_a_bad_number_in_another_column_refuses_the_short_cut(tmp_path: Path) -> None:
    fixes = "oid,iteration_id,plausible_fix,cost_usd,note\na,1,True,0.1,n\na,2,True,{},n\n"
    problems = "oid,filename\na,x\n"
    assert quick(write(tmp_path, problems, fixes.format("0.2"))) is not None
    assert quick(write(tmp_path, problems, fixes.format("x"))) is None


def test_classes_that_agree_with_the_outcomes_take_the_short_cut_and_others_do_not(tmp_path: Path) -> None:
    fixes = "oid,iteration_id,plausible_fix,classification,note\na,1,True,pass,n\na,2,False,{},n\n"
    problems = "oid,filename\na,x\n"
    for fine in ("fail", "Timeout", "hallucination", ""):
        files = write(tmp_path, problems, fixes.format(fine))
        found = quick(files)
        assert found is not None
        assert found[0].select([*KEYS, "problems"]).sort(KEYS).equals(careful(files, tmp_path))
    assert quick(write(tmp_path, problems, fixes.format("pass"))) is None


def test_a_problem_repeated_257_times_is_not_taken_for_one(tmp_path: Path) -> None:
    assert quick(write(tmp_path, "oid,filename\nb,y\n" + "a,x\n" * 257, CLEAN)) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", "zz"]),
            st.integers(0, 130).map(str) | st.sampled_from(["01", "x", ""]),
            st.sampled_from(["True", "False", "true", "0", "1", "yes", "2", ""]),
        ),
        max_size=40,
    )
)
def test_agrees_with_the_careful_reader_or_cannot_say(tmp_path_factory, rows: list[tuple[str, str, str]]) -> None:  # type: ignore[no-untyped-def]
    tmp_path = tmp_path_factory.mktemp("quick")
    text = "oid,iteration_id,plausible_fix\n" + "".join(",".join(row) + "\n" for row in rows)
    files = write(tmp_path, "oid,filename\na,x\nb,y\nc,z\n", text)
    found = quick(files)
    if found is not None:
        attempted = found[0].filter(pl.col("n") > 0).select([*KEYS, "problems"]).sort(KEYS)
        assert attempted.equals(careful(files, tmp_path))
