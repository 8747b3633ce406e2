"""What is an address, what is a path, and what a user reads when object storage does not answer."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import Command, Folder
from tests.storage.s3 import BUCKET, Server, machine
from touchstone.config import load_config
from touchstone.errors import InputFileError, TouchstoneError, shown
from touchstone.locations import address, address_of, input_location, output_location
from touchstone.storage.object_store import Bucket

SECRET = "not-to-be-shown"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://b/x", "s3://b/x"),
        ("S3://b/x/", "s3://b/x"),
        ("gs://b", "gs://b"),
        ("az://container/a/b", "az://container/a/b"),
        (Path("s3://b/x"), "s3://b/x"),
        ("fixes", None),
        ("a:b/c", None),
        ("/s3:/b", None),
    ],
)
def test_address(text: str | Path, expected: str | None) -> None:
    assert address(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("http://host/x", "http:// is not supported"),
        (Path("hdfs://host/x"), "hdfs:// is not supported"),
        ("file:///tmp/x", "file:// is not supported"),
        ("s3://", "not an address"),
        ("s3://b/../c", "not an address"),
        (f"s3://key:{SECRET}@b/x", "leave credentials out"),
    ],
)
def test_no_address(text: str | Path, reason: str) -> None:
    with pytest.raises(TouchstoneError, match=reason) as error:
        address(text)
    assert SECRET not in str(error.value)


def test_messages_show_addresses_in_place_of_local_paths() -> None:
    error = InputFileError(f"{input_location('s3://b/x/m_fixes.csv')}: line 3")
    assert str(error) == "s3://b/x/m_fixes.csv: line 3"
    assert shown(f"{output_location('s3://b/out') / 'tables'}, here") == "s3://b/out/tables, here"


def test_a_bucket_of_another_server_is_another_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = input_location("s3://b/x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert input_location("s3://b/x") != usual
    assert address_of(input_location("s3://b/x")) == address_of(usual) == "s3://b/x"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"fixes_dir": "http://host/x"}, "http:// is not supported"),
        ({"clones_dir": "s3://b/clones"}, "clones_dir: s3://b/clones is in object storage; give a local path"),
        ({"validation": {"cache_dir": "gs://b/cache"}}, "validation.cache_dir: gs://b/cache is in object storage"),
        ({"validation": {"command": {"readable": ["s3://b"]}}}, "validation.command.readable: s3://b is in object"),
        ({"fixes_dir": "s3://b/x", "generate_synthetic_data": True}, "generate_synthetic_data writes to fixes_dir"),
    ],
)
def test_a_configuration_says_which_paths_must_be_local(folder: Folder, keys: dict[str, object], reason: str) -> None:
    folder.configure(**keys)
    with pytest.raises(TouchstoneError, match=reason):
        load_config(folder.config)


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "pass_at_k", "--data", "out", "--save-to", "s3://b/x.csv"),
        ("synth", "--output", "s3://b/x"),
        ("ui", "--config", "s3://b/evaluation_config.json"),
        ("snapshots", "list", "--data", "http://host/x"),
        ("import", "swe-bench", "gs://b/x", "--instances", "a", "--predictions", "b", "--clones", "c"),
    ],
)
def test_no_command_makes_a_folder_of_an_address(touchstone: Command, tmp_path: Path, arguments: tuple[str]) -> None:
    refused = touchstone(*arguments)
    assert refused.returncode == 2
    assert "://" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert not [path for path in tmp_path.iterdir() if ":" in path.name]


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("obstore")] or ["obstore"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TouchstoneError, match=r"s3://b: object storage needs obstore: pip install 'touchstone\[s3\]'"):
        Bucket("s3://b/x")


@contextmanager
def answering(status: int, code: str) -> Iterator[Server]:
    """A server with one answer, which repeats what it was sent like a real one does."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<Error><Code>{code}</Code><AWSAccessKeyId>{SECRET}</AWSAccessKeyId></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Server(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (403, "AccessDenied", r"access denied \(AccessDenied\); check the credentials"),
        (403, "InvalidAccessKeyId", r"access denied \(InvalidAccessKeyId\)"),
        (404, "NoSuchBucket", f"no such bucket: {BUCKET}; check the address"),
        (400, "InvalidRequest", r"the server refused the request \(InvalidRequest\)"),
        pytest.param(
            *(503, "SlowDown", r"the server is overloaded or failing \(SlowDown\); try again later"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_refusal_is_one_line_without_secrets(tmp_path: Path, status: int, code: str, reason: str) -> None:
    with answering(status, code) as server, machine(server, tmp_path):
        for ask in (lambda bucket: bucket.list("x"), lambda bucket: bucket.read("x/manifest.json")):
            with pytest.raises(TouchstoneError, match=reason) as error:
                ask(Bucket(f"s3://{BUCKET}/x"))
            assert SECRET not in str(error.value) and "\n" not in str(error.value)


def test_plain_http_must_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with machine(Server("http://127.0.0.1:1"), tmp_path):
        monkeypatch.delenv("AWS_ALLOW_HTTP")
        with pytest.raises(TouchstoneError, match="plain HTTP; set AWS_ALLOW_HTTP=true"):
            Bucket("s3://b").list("")


def test_a_server_that_is_not_there(touchstone: Command, folder: Folder, tmp_path: Path) -> None:
    folder.configure(fixes_dir=f"s3://{BUCKET}/fixes")
    with machine(Server("http://127.0.0.1:1"), tmp_path):
        failed = touchstone("run", "--config", folder.config, dagster=False)
    assert failed.returncode == 2
    assert f"error: s3://{BUCKET}/fixes: the server cannot be reached; check AWS_ENDPOINT_URL" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_azure_without_an_account() -> None:
    with pytest.raises(TouchstoneError, match="no credentials found; set AZURE_STORAGE_ACCOUNT_NAME"):
        Bucket("az://container/x")


def test_google_and_azure_are_opened_by_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    assert [Bucket(text).address for text in ("gs://bucket/x", "az://container/x")] == ["gs://bucket", "az://container"]


def test_json_output_shows_the_address(folder: Folder) -> None:
    from touchstone.cli.run import run_document

    told = run_document(None, [], output_location("s3://b/out"))
    assert json.loads(json.dumps(told))["output_dir"] == "s3://b/out"
