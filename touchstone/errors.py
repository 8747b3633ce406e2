"""Errors shown to the user: one line that says what is wrong, where, and what to do."""


class TouchstoneError(Exception):
    """Incorrect usage or input. The command line prints the message and exits with code 2."""


class InputFileError(TouchstoneError):
    """A file that cannot be read. Only its own model fails; the other models continue."""

    def __init__(self, message: str) -> None:
        # Names of columns and messages of libraries may have several lines.
        super().__init__(" ".join(message.splitlines()))
