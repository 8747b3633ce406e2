"""Which files are evaluated, for which model, and when a file counts as changed."""

import os
import time
from pathlib import Path

import pytest

from tests.conftest import Folder
from touchstone.config import load_config
from touchstone.errors import TouchstoneError
from touchstone.ingest.sources import ContentHashes, Discovery, check_name, discover

ROW = "oid,iteration_id,plausible_fix\na,1,true\n"


def found(folder: Folder, **keys: object) -> Discovery:
    return discover(load_config(folder.configure(**keys)))


def test_models_come_from_file_names(folder: Folder) -> None:
    folder.fixes("gemini_synthetic", ROW)
    folder.fixes("chatgpt4.1", ROW)
    assert sorted(found(folder).sources) == ["chatgpt4.1", "gemini", "m"]


def test_models_are_matched_by_substring(folder: Folder) -> None:
    folder.fixes("chatgpt4.1", ROW)
    folder.fixes("chatgpt5", ROW)
    assert sorted(found(folder, models=["gpt"]).sources) == ["chatgpt4.1", "chatgpt5"]
    assert sorted(found(folder, models=["4.1", "m"]).sources) == ["chatgpt4.1", "m"]


def test_data_type_goes_by_file_name(folder: Folder) -> None:
    folder.fixes("gemini_synthetic", ROW)
    assert list(found(folder, data_type="synthetic").sources) == ["gemini"]
    assert list(found(folder, data_type="real").sources) == ["m"]


def test_no_file_matches(folder: Folder) -> None:
    with pytest.raises(
        TouchstoneError, match=r"no fixes file matches models=\['zzz'\] and data_type='all'; there are: m"
    ):
        found(folder, models=["zzz"])


def test_no_folder_and_no_files(folder: Folder) -> None:
    with pytest.raises(TouchstoneError, match="no such folder; set 'fixes_dir'"):
        found(folder, fixes_dir="nowhere")
    (folder.root / "empty").mkdir()
    with pytest.raises(TouchstoneError, match=r"no fixes file; expected <model>_fixes\.csv"):
        found(folder, fixes_dir="empty")


@pytest.mark.parametrize("name", ["..", ".hidden", "-rf", 'a"b', "a'b", "a b", "a$b", "", "ü", "x" * 101])
def test_names_that_are_not_allowed(folder: Folder, name: str) -> None:
    folder.fixes(name, ROW) if "/" not in name else None
    discovery = found(folder)
    assert list(discovery.sources) == ["m"]
    assert "is not allowed: use 1 to 100 letters" in discovery.refused[f"{name}_fixes.csv"]


@pytest.mark.parametrize("name", ["../evil", "a/b", "a\\b", "x\n"])
def test_names_that_no_file_can_have(name: str) -> None:
    with pytest.raises(TouchstoneError, match="is not allowed"):
        check_name(name, "model")


def test_two_files_for_one_model_are_not_mixed(folder: Folder) -> None:
    folder.fixes("m_synthetic", ROW)
    discovery = found(folder)
    assert discovery.sources == {}
    assert "both speak for the model 'm'" in discovery.refused["m_fixes.csv"]


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("one")
    memory = tmp_path / "hashes.json"
    hashes = ContentHashes(memory)
    before = hashes.of(path)
    # Saved as if long after the last change, so that the hash counts as settled.
    hashes.save(time.time_ns() + 10_000_000_000)
    stamp = path.stat()
    path.write_text("two")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert ContentHashes(memory).of(path) != before


def test_an_untouched_file_is_not_read_again(tmp_path: Path) -> None:
    path, memory = tmp_path / "f.csv", tmp_path / "hashes.json"
    path.write_text("one")
    hashes = ContentHashes(memory)
    known = hashes.of(path)
    hashes.save(time.time_ns() + 10_000_000_000)
    forged = memory.read_text().replace(known, "f" * 64)
    memory.write_text(forged)
    assert ContentHashes(memory).of(path) == "f" * 64


def test_a_file_that_changed_a_moment_ago_is_not_remembered(tmp_path: Path) -> None:
    path, memory = tmp_path / "f.csv", tmp_path / "hashes.json"
    path.write_text("one")
    hashes = ContentHashes(memory)
    hashes.of(path)
    hashes.save(time.time_ns())
    assert memory.read_text() == "{}"
