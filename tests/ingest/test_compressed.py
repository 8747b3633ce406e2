"""Compressed inputs: the same tables as from plain files, lines of the decompressed text, and no bombs."""

import gzip
import io
import json
from itertools import product
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from tests.conftest import Folder, nightly_but
from touchstone.config import InputLimits, first_problems_csv, load_config
from touchstone.errors import InputFileError, TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.compressed import open_input
from touchstone.ingest.limits import limits, use_limits

PROBLEMS = "oid,filename\na,a.tf\nb,b.tf\nc,c.tf\n"
FIXES = "oid,iteration_id,passed,note\na,1,true,x\na,2,false,y\n\nb,1,maybe,z\nnone,1,true,z\nb,2,true,z\n"
QUOTED = FIXES.replace(",x\n", ',"x\nx"\n')
FORMS = [".csv", ".csv.gz", ".csv.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"]
TEXTS = [form for form in FORMS if form != ".parquet"]


def packed(text: bytes, form: str) -> bytes:
    """The text as a file with this ending: in two members or frames, as concatenated files have them."""
    half = len(text) // 2
    parts = [text[:half], text[half:]]
    if form.endswith(".gz"):
        return b"".join(map(gzip.compress, parts))
    return b"".join(pa.compress(part, "zstd", asbytes=True) for part in parts) if form.endswith(".zst") else text


def as_form(csv: str, form: str) -> bytes:
    rows = pl.read_csv(csv.encode(), infer_schema=False).filter(pl.col("oid").is_not_null())
    if form == ".parquet":
        rows.write_parquet(buffer := io.BytesIO())
        return buffer.getvalue()
    lines = "".join(json.dumps(row) + "\n" for row in rows.to_dicts())
    return packed((csv if form.startswith(".csv") else lines).encode(), form)


def ingested(folder: Folder, **keys: object) -> Evaluation:
    evaluation = Evaluation(load_config(folder.configure(**keys)))
    evaluation.materialize("problems")
    evaluation.ingest.attempts()
    return evaluation


def write(folder: Folder, form: str, fixes: bytes, problems: bytes = PROBLEMS.encode()) -> None:
    for old in (folder.root / "fixes").iterdir():
        old.unlink()
    (folder.root / "fixes" / "problems.csv").write_bytes(problems)
    (folder.root / "fixes" / f"m_fixes{form}").write_bytes(fixes)


@pytest.mark.parametrize("form", nightly_but([".csv.gz", ".jsonl.zst", ".parquet"], FORMS))
def test_every_form_of_a_table_gives_the_same_attempts(folder: Folder, form: str) -> None:
    write(folder, form, as_form(FIXES, form))
    (folder.root / "fixes" / "problems.csv").unlink()
    (folder.root / "fixes" / f"problems{form}").write_bytes(as_form(PROBLEMS, form))
    store = ingested(folder, problems_csv=f"fixes/problems{form}").store
    attempts = store.scan("attempts").select("model", "oid", "iteration_id", "passed").collect()
    assert attempts.rows() == [("m", "a", "1", True), ("m", "a", "2", False), ("m", "b", "2", True)]
    refused = store.scan("quarantine").select("source_file", "kind").collect().rows()
    assert refused == [(f"m_fixes{form}", "bad_boolean"), (f"m_fixes{form}", "unknown_oid")]
    assert store.scan("problems").collect()["oid"].to_list() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [(".csv", QUOTED, 6), (".csv.gz", FIXES, 5), (".csv.zst", QUOTED, 6)],
    ids=["csv", "gzip", "zstd"],
)
def test_a_refused_row_is_on_its_line_of_the_decompressed_text(folder: Folder, form: str, text: str, line: int) -> None:
    write(folder, form, packed(text.encode(), form))
    found = ingested(folder).store.scan("quarantine").select("line", "kind", "raw").collect()
    assert found.rows() == [(line, "bad_boolean", "b,1,maybe,z"), (line + 1, "unknown_oid", "none,1,true,z")]


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        (".csv.gz", "the gzip data is cut off"),
        (".csv.zst", "the zstd data is cut off"),
        (".jsonl.gz", "the gzip data is cut off"),
    ],
)
def test_data_that_is_cut_off_says_that_it_may_still_be_written(folder: Folder, form: str, reason: str) -> None:
    whole = as_form(FIXES * 50, form)
    write(folder, form, whole[: len(whole) - 9])
    folder.fixes("other", "oid,iteration_id,passed\na,1,true\n")
    refused = ingested(folder).store.scan("sources").filter(status="refused").collect()
    (message,) = refused["reason"]
    assert reason in message and "if the file is still being written, run again when it is complete" in message


def test_damaged_data_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m_fixes.csv.gz"
    path.write_bytes(gzip.compress(FIXES.encode()) + b"junk")
    with pytest.raises(InputFileError, match=r"m_fixes\.csv\.gz: damaged gzip data"), open_input(path) as file:
        file.read()


@pytest.fixture
def small_limits() -> InputLimits:
    """Limits that small files reach; whatever a test sets is undone."""
    return InputLimits(file_mb=3, row_mb=1, cell_mb=1, unpack_ratio=10, unpack_free_mb=1)


@pytest.fixture(autouse=True)
def _limits_are_set_back() -> object:
    before = limits()
    yield
    use_limits(before)


@pytest.mark.parametrize("form", [".gz", ".zst"])
def test_a_decompression_bomb_is_refused_while_it_unpacks(tmp_path: Path, small_limits: InputLimits, form: str) -> None:
    use_limits(small_limits)
    path = tmp_path / f"bomb.csv{form}"
    path.write_bytes(packed(bytes(8 << 20), form))
    read = 0
    refused = pytest.raises(InputFileError, match=r"unpacks to over 10 times its size.*input_limits.unpack_ratio")
    with refused, open_input(path) as file:
        while chunk := file.read(1 << 16):
            read += len(chunk)
    assert read <= small_limits.unpacked_bytes(path.stat().st_size)


@pytest.mark.parametrize("form", ["", ".gz"])
def test_a_file_with_too_much_text_is_refused(tmp_path: Path, small_limits: InputLimits, form: str) -> None:
    use_limits(small_limits.model_copy(update={"unpack_ratio": 100_000}))
    path = tmp_path / f"m_fixes.csv{form}"
    path.write_bytes(packed(bytes(4 << 20), form))
    with (
        pytest.raises(InputFileError, match=r"more than 3 MiB of text.*input_limits\.file_mb"),
        open_input(path) as file,
    ):
        while file.read(1 << 16):
            pass


@pytest.mark.parametrize(
    ("form", "quote"), nightly_but([(".csv", '"'), (".csv.gz", ""), (".jsonl", "")], product(TEXTS, ("", '"')))
)
def test_a_cell_that_is_too_long_is_refused_by_its_line(folder: Folder, form: str, quote: str) -> None:
    text = FIXES.replace(",y\n", f",{quote}{'y' * (1 << 20)}y{quote}\n")
    write(folder, form, as_form(text, form))
    found = ingested(folder, input_limits={"row_mb": 2, "cell_mb": 1}).store.scan("quarantine").collect()
    (refused,) = found.filter(kind="too_large").to_dicts()
    assert refused["line"] == (3 if form.startswith(".csv") else 2)
    assert refused["reason"].startswith("a cell is longer than 1 MiB") and len(refused["raw"]) == 2000


def test_a_long_cell_of_a_parquet_file_is_refused_by_its_row(folder: Folder) -> None:
    write(folder, ".parquet", as_form(FIXES.replace(",y\n", f",{'y' * (1 << 20)}y\n"), ".parquet"))
    found = ingested(folder, input_limits={"cell_mb": 1}).store.scan("quarantine").collect()
    assert found.filter(kind="too_large")["line"].to_list() == [2]


@pytest.mark.parametrize("quote", ["", '"'], ids=["bare", "quoted"])
def test_a_csv_row_that_is_too_long_refuses_the_file_because_its_end_is_unknown(folder: Folder, quote: str) -> None:
    lines = "a,9,true,y\n" * 100_000 if quote else "y" * (2 << 20)
    write(folder, ".csv", FIXES.replace(",y\n", f",{quote}{lines}{quote}\n").encode())
    folder.fixes("other", "oid,iteration_id,passed\na,1,true\n")
    store = ingested(folder, input_limits={"row_mb": 1, "cell_mb": 1}).store
    (reason,) = store.scan("sources").filter(status="refused").collect()["reason"]
    assert "line 3: the row is longer than 1 MiB; shorten it, or raise input_limits.row_mb" in reason
    assert store.scan("attempts").collect()["model"].to_list() == ["other"]


def test_a_long_json_line_is_refused_and_the_others_are_read(folder: Folder) -> None:
    text = FIXES.replace(",y\n", f",{'y' * (2 << 20)}\n")
    write(folder, ".jsonl", as_form(text, ".jsonl"))
    store = ingested(folder, input_limits={"row_mb": 1, "cell_mb": 1}).store
    (refused,) = store.scan("quarantine").filter(kind="too_large").collect().to_dicts()
    assert (refused["line"], refused["reason"][:35]) == (2, "the line is longer than 1 MiB; shor")
    assert set(store.scan("quarantine").collect()["kind"]) == {"too_large", "bad_boolean", "unknown_oid"}


def test_raised_limits_read_a_refused_file_again(folder: Folder) -> None:
    write(folder, ".csv", FIXES.replace(",y\n", f",{'y' * (2 << 20)}\n").encode())
    assert ingested(folder, input_limits={"row_mb": 4, "cell_mb": 1}).store.scan("attempts").collect().height == 2
    assert ingested(folder).store.scan("attempts").collect().height == 3


def test_a_configuration_with_an_impossible_limit_is_refused(folder: Folder) -> None:
    with pytest.raises(TouchstoneError, match=r"input_limits\.row_mb"):
        load_config(folder.configure(input_limits={"row_mb": 0}))


@pytest.mark.parametrize(
    ("form", "is_taken"), [(".csv.gz", True), (".csv.zst", True), (".parquet", True), (".jsonl", False)]
)
def test_which_problems_file_need_not_be_named(folder: Folder, form: str, is_taken: bool) -> None:
    """Other tools have a problems.jsonl."""
    write(folder, ".csv", FIXES.encode())
    (folder.root / "fixes" / "problems.csv").unlink()
    path = folder.root / "fixes" / f"problems{form}"
    path.write_bytes(as_form(PROBLEMS, form))
    assert first_problems_csv(load_config(folder.config)) == (path if is_taken else None)
