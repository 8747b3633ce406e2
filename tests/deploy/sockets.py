"""The sockets of processes, as the kernel knows them."""

import ipaddress
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_LISTENING = "0A"


def listening_addresses(processes: Iterable[int]) -> set[tuple[str, int]]:
    """Address and port of every TCP socket on which one of the processes listens."""
    owned = {number for process in processes for number in _sockets(process)}
    entries = (entry for table in ("tcp", "tcp6") for entry in _entries(table, _LISTENING))
    return {(address, port) for number, address, port in entries if number in owned}


def socket_paths(processes: Iterable[int]) -> set[Path]:
    """The paths of the Unix sockets on which one of the processes listens."""
    owned = {number for process in processes for number in _sockets(process)}
    entries = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return {Path(entry[7]) for entry in entries if len(entry) > 7 and entry[7].startswith("/") and entry[6] in owned}


def refuse_connections(port: int, process: int, times: int) -> None:
    """Listen on a port and close every connection, until a process has tried that often."""
    with socket.create_server(("127.0.0.1", port)) as server:
        while times > 0:
            client, (_, its_port) = server.accept()
            its_sockets = {number for number, _, local in _entries("tcp") if local == its_port}
            times -= bool(its_sockets & set(_sockets(process)))
            client.close()


def _sockets(process: int) -> Iterator[str]:
    """The numbers of a process's sockets."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                target = str(descriptor.readlink())
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def _entries(table: str, state: str = "") -> Iterator[tuple[str, str, int]]:
    """Number, local address and local port of the sockets, all or those in a state."""
    for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3].startswith(state):
            address, port = fields[1].split(":")
            yield fields[9], _address(address), int(port, 16)


def _address(text: str) -> str:
    """The kernel writes groups of four bytes, each in the byte order of the machine.

    >>> _address("0100007F"), _address("0000000000000000FFFF00000100007F")
    ('127.0.0.1', '127.0.0.1')
    """
    raw = bytes.fromhex(text)
    groups = (raw[at : at + 4] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(b"".join(group[::-1] if sys.byteorder == "little" else group for group in groups))
    return str(getattr(address, "ipv4_mapped", None) or address)
