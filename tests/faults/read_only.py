"""Commands on a read-only folder: `python -m tests.faults.read_only CONFIG OUTPUT` in a mount namespace."""

import json
import sys

from tests.conftest import call_here


def main(config: str, output: str) -> None:
    """Print code, output and errors of each command."""
    data = ("--data", output)
    lines = [
        ("run", "--config", config),
        ("snapshots", "list", *data),
        ("tables", *data),
        ("sql", "SELECT count(*) FROM pass_at_k", *data),
        ("show", "m", "a", *data),
        ("export", "tiers", *data, "--format", "csv"),
        ("report", *data, "--format", "markdown"),
    ]
    ended = [call_here(*line) for line in lines]
    print(json.dumps([[done.returncode, done.stdout, done.stderr] for done in ended]))


if __name__ == "__main__":
    main(*sys.argv[1:])
