"""A worker whose jobs write lines and then behave as they are told. It runs in the sandbox."""

import os
import signal
import socket
import time
from typing import Any

from touchstone.validation.sandbox import entrypoint
from touchstone.validation.sandbox.entrypoint import Policy

LINE = b"x" * 99 + b"\n"


def serve(policy: Policy) -> None:
    entrypoint.serve(policy, lambda job, descriptors: _write(job, descriptors[0]))


def _write(job: dict[str, Any], answer: int) -> None:
    for _ in range(job["lines"]):
        os.write(answer, LINE)
    match job["then"]:
        case "wait":
            time.sleep(600)
        case "leave a process" if os.fork() == 0:
            signal.pause()
        case "close and wait":
            os.close(answer)
            time.sleep(600)
        case "fill sockets":
            held = []
            with socket.create_server(("127.0.0.1", 0)) as server:
                while True:
                    ours = socket.create_connection(server.getsockname())
                    held += [ours, server.accept()[0]]
                    ours.setblocking(False)
                    while True:
                        try:
                            ours.send(bytes(65536))
                        except BlockingIOError:
                            break
        case "serve at a port":
            with socket.socket() as server:
                server.bind(("127.0.0.1", 8765))
                server.listen()
                with socket.create_connection(server.getsockname()), server.accept()[0] as theirs:
                    theirs.shutdown(socket.SHUT_RDWR)
            os.write(answer, LINE)
        case "fail":
            os._exit(3)
