"""The one kind of error a user may see: a line that says what is wrong, where, and what to do."""


class TouchstoneError(Exception):
    """Wrong use or wrong input. The command line prints the message and exits with 2."""


class InputFileError(TouchstoneError):
    """A file that cannot be read at all. It fails its own model; the other models go on."""
