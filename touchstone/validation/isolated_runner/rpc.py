"""One end of the RPC connection between tests and candidate: it sends requests, and serves requests while it waits.

Frames are length-prefixed JSON over a socket. A reference is the id of an object that stays on its own side; the side
that owns it decides what the other may do with it.
"""

import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

# Imported by name, because tests may replace `json.loads`.
from json import JSONEncoder, loads
from typing import Any

from touchstone.validation.isolated_runner.values import (
    NotPlainError,
    Plain,
    decode,
    encode,
    is_mutable,
    replace_content,
)

MAX_FRAME = 32 * 2**20
_encode_frame = JSONEncoder().encode
_LENGTH = struct.Struct("!I")

Request = dict[str, Any]
Answer = Callable[[Request], Any]


class ConnectionLostError(BaseException):
    """The other side disconnected. A BaseException, so that no test mistakes it for an expected exception."""


@dataclass
class CallResult:
    """The return value of a call, and the new contents of mutable arguments that it changed, by position."""

    value: Any
    changed: list[tuple[int, Plain]]


class RpcConnection:
    """A socket with objects on both sides of it.

    Callbacks: `handle` serves a request of the other side and returns a value; `make_proxy` builds the proxy for a
    remote object; `remote_id` returns the id behind a proxy; `describe` returns what the other side learns about a
    local object; `describe_error` encodes an exception and `to_exception` decodes one. `lost` becomes True when the
    other side disconnects.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.lost = False
        # Why the current test may be misjudged: it asked for something that only works in one process.
        self.doubt = ""
        self._local_objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._proxies: dict[int, Any] = {}
        self.handle: Answer = _refuse
        self.make_proxy: Callable[[int, dict[str, Any]], Any] = lambda number, about: None
        self.remote_id: Callable[[Any], int | None] = lambda value: None
        self.describe: Callable[[Any], dict[str, Any]] = lambda value: {}
        self.to_exception: Callable[[dict[str, Any]], BaseException] = lambda error: RuntimeError(str(error))
        self.describe_error: Callable[[BaseException], dict[str, Any]] = lambda error: {"kind": type(error).__name__}

    def request(self, op: str, **request: Any) -> Any:
        """Send a request and return its result, serving requests of the other side meanwhile."""
        return self.read(self._request(op, request).get("value"))

    def call(self, number: int, positional: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call an object of the other side. Changes that it makes to mutable arguments are applied here."""
        args = [self.write(value) for value in positional]
        kwargs = {name: self.write(value) for name, value in named.items()}
        frame = self._request("call", {"on": number, "args": args, "kwargs": kwargs})
        given = [*positional, *named.values()]
        for place, plain in frame.get("changed", []):
            replace_content(given[place], self.read(plain))
        return self.read(frame.get("value"))

    def handle_call(self, target: Callable[..., Any], request: Request) -> CallResult:
        """Execute a call that the other side requested."""
        positional = [self.read(value) for value in request["args"]]
        named = {name: self.read(value) for name, value in request["kwargs"].items()}
        value = target(*positional, **named)
        before = [*request["args"], *request["kwargs"].values()]
        after = [
            (place, self.write(one)) for place, one in enumerate([*positional, *named.values()]) if is_mutable(one)
        ]
        return CallResult(value, [(place, plain) for place, plain in after if plain != before[place]])

    def _request(self, op: str, request: Request) -> dict[str, Any]:
        self._send(_packed({"op": op, **request}))
        while True:
            frame = self._receive()
            if "op" in frame:
                self._serve(frame)
            elif "error" in frame:
                raise self.to_exception(frame["error"])
            else:
                return frame

    def listen(self) -> None:
        """Serve requests until the other side disconnects."""
        while True:
            self._serve(self._receive())

    def write(self, value: Any) -> Plain:
        """Encode a value for the other side."""
        return encode(value, self._export)

    def read(self, plain: Plain) -> Any:
        """Decode a value from the other side."""
        return decode(plain, self._adopt)

    def local_object(self, number: Any) -> Any:
        """The local object with this id."""
        if number not in self._local_objects:
            raise NotPlainError(f"there is no object {number!r}")
        return self._local_objects[number]

    def _serve(self, request: Request) -> None:
        try:
            value = self.handle(request)
            changed = value.changed if type(value) is CallResult else []
            frame = {"value": self.write(value.value if type(value) is CallResult else value), "changed": changed}
            body = _packed(frame)
        except ConnectionLostError:
            raise
        except BaseException as error:
            body = self._packed_error(error)
        self._send(body)

    def _packed_error(self, error: BaseException) -> bytes:
        try:
            return _packed({"error": self.describe_error(error)})
        except ValueError as too_large:
            return _packed({"error": self.describe_error(too_large)})

    def _export(self, value: Any) -> Plain:
        known = self.remote_id(value)
        if known is not None:
            return {"yours": known}
        number = self._numbers.setdefault(id(value), len(self._local_objects) + 1)
        # Kept as long as the connection, so that its id never refers to another object.
        self._local_objects[number] = value
        return {"mine": number, **self.describe(value)}

    def _adopt(self, about: Plain) -> Any:
        if not isinstance(about, dict):
            raise NotPlainError("what came is no reference")
        if "yours" in about:
            return self.local_object(about["yours"])
        number = about.get("mine")
        if not isinstance(number, int):
            raise NotPlainError("what came is no reference")
        if number not in self._proxies:
            self._proxies[number] = self.make_proxy(number, about)
        return self._proxies[number]

    def _send(self, body: bytes) -> None:
        try:
            self._socket.sendall(_LENGTH.pack(len(body)) + body)
        except OSError:
            raise self._lose() from None

    def _receive(self) -> dict[str, Any]:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MAX_FRAME:
            raise self._lose()
        try:
            frame = loads(str(self._exactly(length), "utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            raise self._lose() from None
        if not isinstance(frame, dict):
            raise self._lose()
        return frame

    def _exactly(self, wanted: int) -> bytes:
        got = bytearray()
        while len(got) < wanted:
            try:
                chunk = self._socket.recv(min(wanted - len(got), 1 << 20))
            except OSError:
                raise self._lose() from None
            if not chunk:
                raise self._lose()
            got += chunk
        return bytes(got)

    def _lose(self) -> ConnectionLostError:
        self.lost = True
        return ConnectionLostError()


def _packed(frame: dict[str, Any]) -> bytes:
    body = _encode_frame(frame).encode()
    if len(body) > MAX_FRAME:
        raise ValueError("the value is too large to pass")
    return body


def _refuse(request: Request) -> Any:
    raise NotPlainError("nothing can be asked here")
