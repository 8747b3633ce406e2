"""Texts in a file of their own: each after a line `==== name` and before an empty one."""

from pathlib import Path


def sections(path: Path) -> dict[str, str]:
    """The texts by name."""
    parts = path.read_text(encoding="utf-8").split("\n==== ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}
