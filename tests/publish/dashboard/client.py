"""Ask an ASGI app in this process, as a browser would ask a server."""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit


@dataclass(frozen=True)
class Answer:
    """What the app sent."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Client:
    """Requests to an app."""

    app: Any

    def get(self, address: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        return self.ask("GET", address, query, headers or {})

    def post(self, address: str, query: dict[str, str], **fields: str) -> Answer:
        return self.ask("POST", address, query, {}, urlencode(fields).encode())

    def ask(
        self, method: str, address: str, query: dict[str, Any], headers: dict[str, str], body: bytes = b""
    ) -> Answer:
        parts, sent = urlsplit(address), list[dict[str, Any]]()
        scope = {
            "type": "http",
            "method": method,
            "path": parts.path,
            "query_string": (parts.query or urlencode(query, doseq=True)).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in {"host": "x", **headers}.items()],
            "server": ("x", 80),
            "scheme": "http",
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))
