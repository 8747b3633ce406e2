"""Whether a port is free, checked before anything slow is loaded."""

import errno
import socket

from touchstone.errors import TouchstoneError


def require_free_port(host: str, port: int) -> None:
    """Refuse a port that another program listens on."""
    with socket.socket() as probe:
        # As the server does: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            reason = "is in use" if busy else f"cannot be used ({error})"
            raise TouchstoneError(f"port {port} on {host} {reason}; choose another with --port") from None
