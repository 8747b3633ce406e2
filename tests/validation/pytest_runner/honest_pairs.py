"""Reads `honest_pairs.txt`: a right and a wrong fix for each of many problems."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """Two fixes of `solution.py`, the unmodified problem, and the files that tell them apart.

    `uncontrolled`: how many of the tests have no control.
    """

    name: str
    right: str
    wrong: str
    before: str
    files: Mapping[str, str]
    uncontrolled: int

    def as_part(self, number: int, fix: str) -> dict[str, str]:
        """The files with one of the fixes, in a folder of their own and with names of their own."""
        made = {"solution.py": getattr(self, fix), **self.files}
        return {
            f"pair{number}/{name if name == 'conftest.py' else name.replace('.', f'_{number}.')}": text.replace(
                "solution", f"solution_{number}"
            )
            for name, text in made.items()
        }


def _read_pairs() -> Iterator[Pair]:
    for part in Path(__file__).with_suffix(".txt").read_text().split("\n==== ")[1:]:
        head, *files = re.split(r"^---- (.*)\n", part, flags=re.MULTILINE)
        title, _, difference = head.partition("\n")
        name, _, uncontrolled = title.rstrip(")").partition(" (uncontrolled: ")
        lines = difference.splitlines()
        right, wrong = ("\n".join(line[2:] for line in lines if line[:1] != other) + "\n" for other in "-+")
        texts = dict(zip(files[::2], files[1::2], strict=True))
        yield Pair(name, right, wrong, texts.pop("before", wrong), texts, int(uncontrolled or 0))


PAIRS = list(_read_pairs())
