"""An S3 server on loopback for the tests: moto's, which honours the conditions If-Match and If-None-Match."""

import json
import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.conftest import Folder, small_folder

BUCKET = "evaluations"


@dataclass
class Server:
    """A running server with one bucket."""

    endpoint: str

    def put(self, key: str, content: str | bytes) -> None:
        self._request("PUT", f"{BUCKET}/{key}", content.encode() if isinstance(content, str) else content)

    def get(self, key: str) -> bytes:
        return self._request("GET", f"{BUCKET}/{key}")

    def delete(self, key: str) -> None:
        self._request("DELETE", f"{BUCKET}/{key}")

    def make_bucket(self, name: str) -> None:
        self._request("PUT", name)

    def manifest(self, output: str) -> dict[str, dict[str, dict[str, object]]]:
        found: dict[str, dict[str, dict[str, object]]] = json.loads(self.get(f"{output}/manifest.json"))
        return found

    def _request(self, method: str, path: str, content: bytes | None = None) -> bytes:
        asked = urllib.request.Request(f"{self.endpoint}/{path}", data=content, method=method)
        # Without it, the server takes the content for a form.
        asked.add_header("Content-Type", "application/octet-stream")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "not-to-be-shown",
            "AWS_REGION": "us-east-1",
        }


@contextmanager
def s3_server() -> Iterator[Server]:
    """Start the server on a free port of loopback."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    try:
        host, port = running.get_host_and_port()
        server = Server(f"http://{host}:{port}")
        server.make_bucket(BUCKET)
        yield server
    finally:
        running.stop()


@contextmanager
def using(server: Server, cache: Path) -> Iterator[Server]:
    """The environment of a machine that uses the server and has its own cache folder."""
    with patch.dict("os.environ", {**server.environment, "XDG_CACHE_HOME": str(cache)}):
        yield server


def small_evaluation(server: Server, root: Path, name: str, **keys: object) -> Folder:
    """The small evaluation of `tests.conftest` with its files, and its results, below `name` in the bucket."""
    folder = small_folder(root)
    for file in sorted((root / "fixes").iterdir()):
        server.put(f"{name}/fixes/{file.name}", file.read_bytes())
    places = {"fixes_dir": f"s3://{BUCKET}/{name}/fixes", "output_dir": f"s3://{BUCKET}/{name}/out"}
    folder.configure(**places | keys)
    return folder
