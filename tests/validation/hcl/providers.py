"""Lets Terraform judge modules whose providers exist only as schemas: a provider that has nothing else.

It speaks version 6 of Terraform's plugin protocol (docs/plugin-protocol in its repository). `terraform validate` asks a
provider for its schemas and then whether it accepts each block; this one accepts all, so that only Terraform's own
checks count. The environment variable TF_REATTACH_PROVIDERS names the socket, and nothing is installed.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc  # type: ignore[import-untyped]

_SECTIONS = {2: "resource_schemas", 3: "data_source_schemas"}
_MODES = ("", "single", "list", "set", "map", "group")
_FLAGS = ("required", "optional", "computed", "sensitive")


@contextmanager
def served(schemas: Mapping[str, Any], *providers: str) -> Iterator[dict[str, str]]:
    """The environment in which Terraform finds the providers, which all have the same schemas."""
    parts = [
        _field(number, _field(1, name) + _field(2, _field(2, _block(schema["block"]))))
        for number, section in _SECTIONS.items()
        for name, schema in schemas[section].items()
    ]
    answer = _field(1, _field(2, b"")) + b"".join(parts)
    server = grpc.server(ThreadPoolExecutor())
    server.add_generic_rpc_handlers((_Handler(answer),))
    # Terraform may end the process that it is given.
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["sleep", "3600"]) as process:
        server.add_insecure_port(f"unix:{folder}/socket")
        server.start()
        place = {"Network": "unix", "String": f"{folder}/socket"}
        provider = {"Protocol": "grpc", "ProtocolVersion": 6, "Pid": process.pid, "Test": True, "Addr": place}
        try:
            yield {"TF_REATTACH_PROVIDERS": json.dumps(dict.fromkeys(providers, provider))}
        finally:
            server.stop(None)
            process.kill()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, schemas: bytes) -> None:
        self._schemas = schemas

    def service(self, details: Any) -> Any:
        if not details.method.startswith("/tfplugin6.Provider/"):
            return None
        answer = self._schemas if details.method.endswith("GetProviderSchema") else b""
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer)


def _field(number: int, value: bytes | str | int) -> bytes:
    """A field of a protobuf message; zero, which is the default, is left out."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value) if value else b""
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    head, last = number >> 7, number & 127
    return bytes([last | 128]) + _varint(head) if head else bytes([last])


def _block(raw: Mapping[str, Any]) -> bytes:
    nested = b""
    for name, one in (raw.get("block_types") or {}).items():
        limits = _field(4, one.get("min_items") or 0) + _field(5, one.get("max_items") or 0)
        mode = _field(3, _MODES.index(one["nesting_mode"]))
        nested += _field(3, _field(1, name) + _field(2, _block(one["block"])) + mode + limits)
    return _attributes(2, raw) + nested


def _attributes(number: int, raw: Mapping[str, Any]) -> bytes:
    return b"".join(_field(number, _attribute(name, one)) for name, one in (raw.get("attributes") or {}).items())


def _attribute(name: str, raw: Mapping[str, Any]) -> bytes:
    flags = b"".join(_field(number, raw.get(flag) is True) for number, flag in enumerate(_FLAGS, 4))
    if nested := raw.get("nested_type"):
        kind = _field(10, _attributes(1, nested) + _field(3, _MODES.index(nested["nesting_mode"])))
    else:
        kind = _field(2, json.dumps(raw["type"]))
    return _field(1, name) + kind + flags
