"""Errors shown to the user: one line that says what is wrong, where, and what to do."""

from touchstone.locations import shown


class TouchstoneError(Exception):
    """Incorrect usage or input. The command line prints the message and exits with code 2.

    A local path that stands for an address in object storage is replaced by the address.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(shown(str(message)))


class InputFileError(TouchstoneError):
    """A file that cannot be read. Only its own model fails; the other models continue."""
