"""An S3 server on loopback for the tests: moto's, which honours the conditions If-Match and If-None-Match."""

import json
import logging
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.conftest import Folder, small_folder

BUCKET = "evaluations"

# For a program of its own: kill it before or after its upload number `sys.argv[1]`, counting the switch as one.
KILLED = """
import os, signal, sys, threading
from touchstone.storage.object_store import Bucket

left, guard = [int(sys.argv[1])], threading.Lock()
def counted(method):
    def call(*arguments):
        with guard:
            left[0] -= 1
            last = left[0] == 0
        if last and sys.argv[2] == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*arguments)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return call
Bucket.upload, Bucket.replace = counted(Bucket.upload), counted(Bucket.replace)
"""


@dataclass
class Server:
    """A running server with one bucket."""

    endpoint: str
    running: Any = None

    @contextmanager
    def away(self) -> Iterator[None]:
        """Refuse connections while the block runs. Moto keeps the objects in this process."""
        _stop(self.running)
        try:
            yield
        finally:
            self.running = _started(int(self.endpoint.rpartition(":")[2]))

    def put(self, key: str, content: str | bytes) -> None:
        import obstore

        obstore.put(self._store, key, content.encode() if isinstance(content, str) else content)

    def get(self, key: str) -> bytes:
        import obstore

        return bytes(obstore.get(self._store, key).bytes())

    def delete(self, key: str) -> None:
        import obstore

        obstore.delete(self._store, key)

    def keys(self, prefix: str) -> list[str]:
        import obstore

        return sorted(each["path"] for batch in obstore.list(self._store, prefix) for each in batch)

    def manifest(self, output: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.get(f"{output}/manifest.json"))
        return found

    def assert_complete(self, output: str) -> dict[str, bytes]:
        """The content of every published file; each must be what the manifest says."""
        import hashlib

        files = self.manifest(output)["files"]
        contents = {stored["key"]: self.get(f"{output}/{stored['key']}") for stored in files.values()}
        for path, stored in files.items():
            assert hashlib.sha256(contents[stored["key"]]).hexdigest() == stored["sha256"], path
        return {path: contents[stored["key"]] for path, stored in files.items()}

    @cached_property
    def _store(self) -> Any:
        from obstore.store import S3Store

        secret = {"access_key_id": "tester", "secret_access_key": "not-to-be-shown", "region": "us-east-1"}
        return S3Store(BUCKET, endpoint=self.endpoint, client_options={"allow_http": True}, **secret)

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
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = _started(port=0)
    host, port = running.get_host_and_port()
    server = Server(f"http://{host}:{port}", running)
    try:
        urllib.request.urlopen(urllib.request.Request(f"{server.endpoint}/{BUCKET}", method="PUT"), timeout=60)
        yield server
    finally:
        _stop(server.running)


def _started(port: int) -> Any:
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    running.start()
    return running


def _stop(running: Any) -> None:
    running.stop()
    running._server.server_close()


@contextmanager
def machine(server: Server, cache: Path) -> Iterator[Server]:
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
