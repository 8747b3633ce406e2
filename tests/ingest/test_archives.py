"""Compressed files and archives: the rows of the files in them, and nothing of a hostile one."""

import hashlib
import io
import json
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import NOT_DRAWN, Command, Folder, nightly_but
from tests.ingest.adapters.formats import SAMPLES, WAYS
from tests.ingest.adapters.test_every_format import golden, snapshot
from tests.ingest.test_compressed import packed
from touchstone.config import EvaluationConfig, InputLimits, load_config
from touchstone.errors import UNPACKED, TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest import archives, limits
from touchstone.ingest.compressed import uncompressed_name
from touchstone.ingest.discovery import UNUSED_PROBLEMS, Discovery, discover, files_with_problems
from touchstone.ingest.implied_config import implied_settings, write_config
from touchstone.ingest.inputs import Inputs
from touchstone.ingest.problems import NO_PROBLEMS_FILE

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tar.zst")
# A folder is compressed as an archive only, and so is Parquet that needs its neighbours; scylla_raw names no model.
PACKED = [
    (name, form)
    for name, form in product(SAMPLES, (".gz", ".zst", *ARCHIVES))
    if (form in ARCHIVES or (not SAMPLES[name].source and SAMPLES[name].format != "lighteval")) and name != "scylla_raw"
]
BY_DAY = [(name, ".gz") for name, form in PACKED if form == ".gz" and name in WAYS]
BY_DAY += [("harbor", ".zip"), ("swebench-logs", ".tar.gz"), ("csv", ".tar.zst"), ("failproof database", ".zip")]
FIXES = b"oid,iteration_id,passed\na,1,true\nb,1,false\n"


def archive_of(files: dict[str, bytes], form: str) -> bytes:
    held = io.BytesIO()
    if form == ".zip":
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as opened:
            for name, content in files.items():
                opened.writestr(name, content)
        return held.getvalue()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed(held.getvalue(), form)


def discovered(folder: Path, **settings: object) -> Discovery:
    return discover(
        EvaluationConfig.model_validate({"fixes_dir": folder, "output_dir": folder / "out", "inputs": ["."]} | settings)
    )


@pytest.mark.parametrize(("name", "form"), nightly_but(BY_DAY, PACKED))
def test_every_format_gives_its_golden_rows(tmp_path: Path, name: str, form: str) -> None:
    sample, plain, place = SAMPLES[name], tmp_path / "plain", tmp_path / "packed"
    sample.copy(plain)
    files = {str(file.relative_to(plain)): file.read_bytes() for file in sorted(plain.rglob("*")) if file.is_file()}
    if form in ARCHIVES:
        place.mkdir()
        (place / f"runs{form}").write_bytes(archive_of(files, form))
    else:
        for each, content in files.items():
            (place / each).parent.mkdir(parents=True, exist_ok=True)
            (place / f"{each}{form}").write_bytes(packed(content, form))
    tables = discovered(place).adapter_tables.items()
    named = sorted(tables, key=lambda each: sample.document.endswith(uncompressed_name(each[0])), reverse=True)
    path, table = next(each for each in named if each[1].format == sample.format)
    root = next((folder for folder in UNPACKED if path.is_relative_to(folder)), place)
    found = json.loads(json.dumps(snapshot(table, root)).replace(form, ""))
    assert found == json.loads(golden(name).read_text())


# What is refused as a whole, and the reason.


def tar_with(change: Callable[[tarfile.TarInfo], None], content: bytes = b"") -> bytes:
    """A TAR file with a good file, and one whose header is changed."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        good, odd = tarfile.TarInfo("m_fixes.csv"), tarfile.TarInfo("odd")
        good.size, odd.size = len(FIXES), len(content)
        change(odd)
        tar.addfile(good, io.BytesIO(FIXES))
        tar.addfile(odd, io.BytesIO(content))
    return held.getvalue()


def repeated(form: str) -> bytes:
    files = archive_of({"m_fixes.csv": FIXES, "n_fixes.csv": FIXES}, form)
    if form == ".zip":
        return files.replace(b"n_fixes.csv", b"m_fixes.csv")
    one, two = (archive_of({name: FIXES}, ".tar")[:1024] for name in ("m_fixes.csv", "./m_fixes.csv"))
    return one + two + bytes(1024)


def encrypted() -> bytes:
    data = bytearray(archive_of({"m_fixes.csv": FIXES}, ".zip"))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def long_header() -> bytes:
    """An extended header that would be held in memory."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("m_fixes.csv")
        member.pax_headers = {"comment": "x" * (2 << 20)}
        tar.addfile(member)
    return held.getvalue()


PLAIN = archive_of({"m_fixes.csv": FIXES, "n_fixes.csv": FIXES}, ".tar")
HOSTILE = {
    "zip: a bomb": (".zip", archive_of({"m_fixes.csv": FIXES, "a": bytes(3 << 20)}, ".zip"), "unpacks to over"),
    "gz: a bomb": (".tar.gz", archive_of({"m_fixes.csv": FIXES, "a": bytes(3 << 20)}, ".tar.gz"), "unpacks to over"),
    "zst: a bomb": (".tar.zst", archive_of({"a": bytes(3 << 20)}, ".tar.zst"), "unpacks to over"),
    "eval: a bomb": (".eval.gz", packed(bytes(3 << 20), ".gz"), "unpacks to over"),
    "tar: a long header": (".tar", long_header(), "not a whole TAR file"),
    "zip: up": (".zip", archive_of({"m_fixes.csv": FIXES, "a/../../b": b""}, ".zip"), "leads out of the archive"),
    "tar: up": (".tar", archive_of({"../b": b""}, ".tar"), "leads out of the archive"),
    "zip: absolute": (".zip", archive_of({"/tmp/b": b""}, ".zip"), "leads out of the archive"),
    "tar: absolute": (".tar", archive_of({"/tmp/b": b""}, ".tar"), "leads out of the archive"),
    "zip: a name twice": (".zip", repeated(".zip"), "twice"),
    "tar: a name twice": (".tar", repeated(".tar"), "twice"),
    "tar: a file as a folder": (".tar", archive_of({"a": b"", "a/b": b""}, ".tar"), "cannot be unpacked"),
    "zip: a long name": (".zip", archive_of({"x" * 300: b""}, ".zip"), "cannot be unpacked"),
    "zip: many files": (".zip", archive_of(dict.fromkeys("abcdef", b""), ".zip"), "more than 5 files"),
    "tar: many files": (".tar", archive_of(dict.fromkeys("abcdef", b""), ".tar"), "more than 5 files"),
    "zip: encrypted": (".zip", encrypted(), "encrypted"),
    "zip: cut off": (".zip", archive_of({"m_fixes.csv": FIXES}, ".zip")[:-30], "end of the ZIP file is missing"),
    "tar: cut off in a file": (".tar", PLAIN[: 3 * 512 + 10], "not a whole TAR file"),
    "tar: cut off between files": (".tar", PLAIN[: 2 * 512], "not a whole TAR file"),
    "tar: a damaged header": (".tar", PLAIN[:1024] + b"x" + PLAIN[1025:], "not a whole TAR file"),
    "tar: another one after it": (".tar", PLAIN + PLAIN, "there is more after its end"),
    "gz: cut off": (".tar.gz", archive_of({"m_fixes.csv": FIXES}, ".tar.gz")[:-9], "is cut off"),
    "zst: cut off": (".tar.zst", archive_of({"m_fixes.csv": FIXES}, ".tar.zst")[:-9], "is cut off"),
    "zip: not one": (".zip", b"hello", "end of the ZIP file is missing"),
    "tar: empty": (".tar.gz", b"", "not a whole TAR file"),
}


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 5)
    monkeypatch.setattr(limits, "_in_use", InputLimits(unpack_ratio=10, unpack_free_mb=1))


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_or_damaged_archive_is_refused_as_a_whole(tmp_path: Path, kind: str) -> None:
    form, content, reason = HOSTILE[kind]
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    (folder / f"logs{form}").write_bytes(content)
    (folder / "other_fixes.csv").write_bytes(FIXES)
    before = set(tmp_path.rglob("*"))
    found = discovered(folder)
    (refusal,) = found.not_evaluated
    assert (refusal.file, refusal.status) == (f"logs{form}", "refused")
    assert reason in refusal.reason and refusal.reason.startswith(f"{folder}/logs{form}: ")
    assert list(found.sources) == ["other"] and set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_file_are_not_unpacked(tmp_path: Path, kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = kind, "/etc/passwd"

    (tmp_path / "logs.tar").write_bytes(tar_with(change))
    check_only_the_good_file(discovered(tmp_path), "logs.tar/odd")


def test_links_in_a_zip_file_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as opened:
        opened.writestr("m_fixes.csv", FIXES)
        link = zipfile.ZipInfo("odd")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(link, "/etc/passwd")
    check_only_the_good_file(discovered(tmp_path), "logs.zip/odd")


def check_only_the_good_file(found: Discovery, link: str) -> None:
    assert list(found.sources) == ["m"]
    assert [(each.file, each.reason) for each in found.not_evaluated] == [(link, "a link, which is not unpacked")]
    (source,) = found.sources["m"]
    assert list(source.path.parent.iterdir()) == [source.path]


@pytest.mark.usefixtures("small_limits")
def test_a_sparse_file_counts_with_its_zeros(tmp_path: Path) -> None:
    """512 bytes that stand for 1 GiB: neither the file nor its compression is large."""
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    subprocess.run(["tar", "--sparse", "-cf", "logs.tar", "sparse"], cwd=tmp_path, check=True)
    (tmp_path / "sparse").unlink()
    assert (tmp_path / "logs.tar").stat().st_size < 20_000
    assert "unpacks to over 10 times its size" in discovered(tmp_path).refused["logs.tar"]


def test_an_archive_in_an_archive_is_reported(tmp_path: Path) -> None:
    inner = archive_of({"n_fixes.csv": FIXES}, ".zip")
    (tmp_path / "logs.zip").write_bytes(archive_of({"m_fixes.csv": FIXES, "inner.zip": inner}, ".zip"))
    found = discovered(tmp_path)
    assert list(found.sources) == ["m"]
    assert [(each.file, each.status) for each in found.not_evaluated] == [("logs.zip/inner.zip", "unknown")]


def test_a_folder_and_a_broken_link_that_are_called_archives(tmp_path: Path) -> None:
    (tmp_path / "runs.zip").mkdir()
    (tmp_path / "runs.zip" / "m_fixes.csv").write_bytes(FIXES)
    (tmp_path / "gone.tar.gz").symlink_to("nowhere")
    found = discovered(tmp_path)
    assert list(found.sources) == ["m"] and "No such file" in found.refused["gone.tar.gz"]


def test_a_log_of_inspect_that_is_called_a_zip_file_stays_one(tmp_path: Path) -> None:
    log = SAMPLES["inspect archive"].copy(tmp_path)
    log.rename(tmp_path / "log.zip")
    assert [table.format for table in discovered(tmp_path).adapter_tables.values()] == ["inspect"]


def test_what_is_in_an_archive_is_called_by_its_path_in_it(folder: Folder) -> None:
    fixes = folder.root / "fixes"
    (fixes / "m_fixes.csv").unlink()
    rows = FIXES + b"a,2,maybe\n"
    files = {"day/m_fixes.csv": rows, "day/n_fixes.csv": b"oid\n", "__MACOSX/x.json": b"{}"}
    (fixes / "runs.zip").write_bytes(archive_of(files, ".zip"))
    evaluation = Evaluation(load_config(folder.config))
    evaluation.materialize("problems")
    evaluation.ingest.attempts()
    sources = evaluation.store.scan("sources").filter(format="native").sort("source_file").collect()
    assert sources["source_file"].to_list() == ["problems.csv", "runs.zip/day/m_fixes.csv", "runs.zip/day/n_fixes.csv"]
    assert sources["sha256"][1] == hashlib.sha256((fixes / "runs.zip").read_bytes()).hexdigest()
    assert f"{fixes}/runs.zip/day/n_fixes.csv: " in sources["reason"][2]
    refused = evaluation.store.scan("quarantine").select("source_file", "line").collect().rows()
    assert ("runs.zip/day/m_fixes.csv", 4) in refused
    assert evaluation.store.inputs("attempts") == {"runs.zip": sources["sha256"][1]}


def test_an_archive_that_did_not_change_is_not_read_again(folder: Folder) -> None:
    place = folder.root / "fixes" / "runs.tar.gz"
    (folder.root / "fixes" / "m_fixes.csv").unlink()
    place.write_bytes(archive_of({"n_fixes.csv": FIXES}, ".tar.gz"))
    config = load_config(folder.config)

    def attempts() -> tuple[str, dict[str, str]]:
        evaluation = Evaluation(config)
        evaluation.materialize("problems")
        evaluation.ingest.attempts()
        return evaluation.store.fingerprint("attempts"), Inputs(config, evaluation.store.content_hashes).state()

    first = attempts()
    assert attempts() == first and set(first[1]) == {"runs.tar.gz", "problems"}
    place.write_bytes(archive_of({"n_fixes.csv": FIXES + b"a,2,true\n"}, ".tar.gz"))
    assert attempts()[0] != first[0]


PROBLEMS = b"oid,filename,suite\na,a.tf,s\nb,b.tf,s\nc,c.tf,s\n"


@pytest.mark.services
def test_problems_in_an_archive_are_those_of_a_run(touchstone: Command, tmp_path: Path) -> None:
    place = tmp_path / "runs.zip"
    place.write_bytes(archive_of({"day/problems.csv": PROBLEMS, "day/m_fixes.csv": FIXES}, ".zip"))
    config, settings = implied_settings([place])
    write_config(config, settings | NOT_DRAWN)
    for reason in ("results in", "up to date"):
        done = touchstone("run", place, dagster=False)
        assert reason in done.stdout and "not evaluated" not in done.stdout
    store = Evaluation(load_config(config)).store
    assert store.scan("problems").select("oid", "suite").collect().rows() == [("a", "s"), ("b", "s"), ("c", "s")]
    sources = store.scan("sources").filter(status="problems").select("source_file", "accepted").collect()
    assert sources.rows() == [("runs.zip/day/problems.csv", 3)]
    assert store.inputs("problems")["problems"] == hashlib.sha256(PROBLEMS).hexdigest()
    assert NO_PROBLEMS_FILE not in touchstone("pass-at-k", place).stderr
    unknown = touchstone("validate", "--config", config, "--problem", "d", "--fix", place)
    assert unknown.stderr.endswith("problems.csv: there is no problem 'd'\n")
    place.write_bytes(archive_of({"day/problems.csv": PROBLEMS[:-9], "day/m_fixes.csv": FIXES}, ".zip"))
    Evaluation(load_config(config)).materialize("problems")
    assert store.scan("problems").collect().height == 2


def test_of_several_problems_files_in_archives_and_beside_one_only_that_is_used(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        files = {"problems.csv": PROBLEMS, f"{name[:3]}_fixes.csv": FIXES}
        (tmp_path / name).write_bytes(archive_of(files, ".zip"))
    found = discovered(tmp_path)
    assert found.problems_csv is None
    assert [(each.file, each.reason) for each in found.not_evaluated] == [
        (f"{name}/problems.csv", UNUSED_PROBLEMS) for name in ("one.zip", "two.zip")
    ]
    with pytest.raises(TouchstoneError, match=r"^one\.zip/problems\.csv looks like the problems file: .* only one may"):
        files_with_problems(found, EvaluationConfig(fixes_dir=tmp_path, output_dir=tmp_path / "out"))
    (tmp_path / "problems.csv").write_bytes(PROBLEMS)
    found = discovered(tmp_path)
    assert found.problems_csv == tmp_path / "problems.csv" and len(found.not_evaluated) == 2
    (tmp_path / "problems.csv").unlink()
    (tmp_path / "two.zip").write_bytes(archive_of({"problems.csv": b"name,points\na,3\n"}, ".zip"))
    assert discovered(tmp_path).problems_csv is not None, "another tool's file of this name is none"
