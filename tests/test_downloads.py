"""Addresses that people paste: what is on disk of them, or the command that downloads it."""

import os
from pathlib import Path

import pytest

from tests.ingest.adapters.formats import SAMPLES
from touchstone.config import EvaluationConfig
from touchstone.errors import TouchstoneError
from touchstone.ingest.discovery import discover
from touchstone.ingest.implied_config import implied_config
from touchstone.locations import downloaded, input_location, output_location, snapshot_of

DATA_SET = "https://huggingface.co/datasets/acme/evals"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set with two snapshots, of which `main` is the older one, as `hf download` leaves it."""
    folder = tmp_path / "hub" / "datasets--acme--evals"
    for name in ("blobs", "refs", "snapshots/old/runs", "snapshots/new"):
        (folder / name).mkdir(parents=True)
    (folder / "blobs" / "d0").write_bytes(SAMPLES["human-eval"].content)
    (folder / "snapshots" / "old" / "runs" / "gpt_results.jsonl").symlink_to("../../../blobs/d0")
    (folder / "snapshots" / "new" / "claude_results.jsonl").symlink_to("../../blobs/d0")
    (folder / "refs" / "main").write_text("old")
    for name in ("HF_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize(
    ("address", "found"),
    [
        (DATA_SET, "old"),
        (f"{DATA_SET}/", "old"),
        (f"{DATA_SET}/tree/main/runs", "old/runs"),
        (f"{DATA_SET}/blob/main/runs/gpt_results.jsonl?download=true", "old/runs/gpt_results.jsonl"),
        (f"{DATA_SET}/tree/new", "new"),
    ],
)
def test_a_data_set_in_the_cache_is_used(cache: Path, address: str, found: str) -> None:
    assert input_location(address) == input_location(Path(address)) == cache / "snapshots" / found


def test_without_a_main_the_newest_snapshot_is_used(cache: Path) -> None:
    (cache / "refs" / "main").unlink()
    os.utime(cache / "snapshots" / "new", (9e9, 9e9))
    assert snapshot_of(cache) == cache / "snapshots" / "new"
    assert snapshot_of(cache, "v1") is None and snapshot_of(cache.parent) is None


@pytest.mark.parametrize(
    ("address", "command"),
    [
        ("https://huggingface.co/datasets/acme/others", "hf download acme/others --repo-type dataset"),
        (f"{DATA_SET}/tree/main/absent", "hf download acme/evals --repo-type dataset"),
        (f"{DATA_SET}/tree/v1", "hf download acme/evals --repo-type dataset --revision v1"),
        ("https://huggingface.co/acme/model", "hf download acme/model --repo-type model"),
        ("https://github.com/acme/evals", "git clone --depth 1 https://github.com/acme/evals"),
        ("https://github.com/acme/evals/tree/dev/x", "git clone --depth 1 --branch dev https://github.com/acme/evals"),
    ],
)
@pytest.mark.usefixtures("cache")
def test_what_is_not_on_disk_says_how_to_get_it(address: str, command: str) -> None:
    with pytest.raises(TouchstoneError, match=f": not on this disk; run `{command}` first$"):
        downloaded(address)


@pytest.mark.parametrize("name", ["evals", "evals-dev"])
@pytest.mark.usefixtures("cache")
def test_a_clone_of_that_branch_or_a_download_beside_is_used(tmp_path: Path, name: str) -> None:
    (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / name / ".git" / "config").write_text("[remote]\nurl = git@github.com:acme/evals.git\n")
    (tmp_path / name / ".git" / "HEAD").write_text("ref: refs/heads/dev\n")
    assert downloaded("https://github.com/acme/evals/tree/dev") == Path(name)
    for other in ("https://github.com/acme/evals/tree/main", "https://github.com/others/evals/tree/v2"):
        with pytest.raises(TouchstoneError, match="not on this disk"):
            downloaded(other)


def test_the_folder_of_the_cache_is_read_once_and_gets_no_results(cache: Path) -> None:
    config = EvaluationConfig(fixes_dir=cache.parent, output_dir=cache.parent / "out", inputs=["."])
    found = discover(config)
    label = "datasets--acme--evals/snapshots/old/runs/gpt_results.jsonl"
    assert [source.name for source in found.sources["gpt"]] == [label] and list(found.sources) == ["gpt"]
    assert found.not_evaluated == []
    implied = implied_config([input_location(DATA_SET)])
    assert implied.output_dir.parent == Path.cwd()


def test_a_linked_file_keeps_its_own_name(cache: Path) -> None:
    config = implied_config([cache / "snapshots" / "old" / "runs" / "gpt_results.jsonl"])
    assert list(discover(config).sources) == ["gpt"]


def test_results_do_not_go_to_a_web_address() -> None:
    with pytest.raises(TouchstoneError, match="https:// is not supported"):
        output_location(DATA_SET)
