"""The comments of one pull request, served on the loopback as GitHub and GitLab serve them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"login": "github-actions[bot]", "username": "project_7_bot", "type": "Bot"}


class CommentsApi(ThreadingHTTPServer):
    """The server. `denied` are the methods that the token may not use, `me` what it says about the token's owner."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.tokens: set[str | None] = set()
        self.denied: dict[str, int] = {}
        self.me: dict[str, str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, body: str, author: dict[str, str] = BOT) -> dict[str, Any]:
        self.comments.append({"id": 100 + len(self.comments), "body": body, "user": author, "author": author})
        return self.comments[-1]

    def bodies(self) -> list[str]:
        return [each["body"] for each in self.comments]


class _Handler(BaseHTTPRequestHandler):
    server: CommentsApi

    def _answer(self) -> None:
        url = urlsplit(self.path)
        self.server.requests.append((self.command, url.path))
        self.server.tokens.add(self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN"))
        sent = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        if url.path == "/user":
            return self._send(200 if self.server.me else 403, self.server.me)
        if self.command in self.server.denied:
            return self._send(self.server.denied[self.command], {"message": "Resource not accessible by integration"})
        if self.command == "GET":
            wanted = parse_qs(url.query)
            size, page = int(wanted["per_page"][0]), int(wanted["page"][0])
            return self._send(200, self.server.comments[size * (page - 1) : size * page])
        if self.command == "POST":
            return self._send(201, self.server.add(sent["body"], self.server.me or BOT))
        (found,) = [each for each in self.server.comments if re.search(rf"/{each['id']}$", url.path)]
        found["body"] = sent["body"]
        return self._send(200, found)

    do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815

    def _send(self, status: int, answer: object) -> None:
        self.send_response(status)
        if status in (301, 302):
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def comments_api() -> Iterator[CommentsApi]:
    """The server, for as long as the block lasts."""
    with CommentsApi() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
