"""Single changes of ordinary modules, each with whether Terraform accepts the result: how good is the static checker?

`python -m tests.validation.hcl.mutants --count 600 --seed 1` asks the terraform on PATH and writes `mutants.csv`. The
checker was not developed with these changes, so the share of refused ones that it passes is an honest estimate.
"""

import argparse
import csv
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.validation.hcl.recordings import ask_terraform

MODULES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "ordinary").glob("*.tf"))}
RECORDED = Path(__file__).parent / "mutants.csv"

_VALUES = ("5", '"other"', "true", "null", '["a"]', "[]", '{ a = "b" }', "{}", 'toset(["a"])', "var.nothing", "")
_FUNCTIONS = (
    "abs base64encode can chomp coalesce compact concat contains distinct element flatten format join jsondecode "
    "jsonencode keys length lookup lower max merge min one range replace reverse setunion slice sort split substr "
    "tolist tomap tonumber toset tostring trimspace try upper values zipmap nonesuch"
)
_ARGUMENTS = (
    'count = "x"',
    "count = 2",
    'for_each = ["a"]',
    "for_each = 3",
    'for_each = toset(["a"])',
    "provider = nope",
    "depends_on = [local.name]",
    "lifecycle {\n    ignore_changes = [nothing]\n  }",
    'lifecycle {\n    prevent_destroy = "x"\n  }',
    'provisioner "local-exec" {\n  }',
    'dynamic "x" {\n    for_each = []\n  }',
)
# That depends on the machine, not on the module.
_NOT_INSTALLED = "Missing required provider"
# Where a change is made, and what may stand there instead; `§` is the text before.
_CHANGES: list[tuple[str, tuple[str, ...]]] = [
    (r"(?m)^ +\w+ += (.+)$", _VALUES),
    (r"(?m)^ +\w+ += ([^{\[\n]+)$", ("[§]", "{ a = § }", *(f"{name}(§)" for name in _FUNCTIONS.split()))),
    (r'"[^"$%\n]*"', _VALUES),
    (r"\b\d+\b", ('"x"', "true", "[1]", "null", "-1")),
    (r"\b(?:true|false)\b", ('"maybe"', "2", "[]")),
    (r"\b([a-z0-9]+)\(", tuple(_FUNCTIONS.split())),
    (r"\w+\(([^(),\n]+, [^(),\n]+)\)", ("swapped",)),
    (r"\b(?:var|local|each|self|count|path)\.(\w+)", ("nothing", "name", "id", "key", "value", "index", "tags")),
    (r"\b\w+\.\w+(?:\[[^]]*\])?\.(\w+)", ("nope", "id", "output", "input", "name", "value")),
    (r"\w\.\w+()(?![\w.(\[])", ("[0]", '["a"]', ".nope", "[*]", "[*].id")),
    (r"(?m)^ +(\w+) +=", ("§s", "§_name", "nope")),
    (r"\b(?:string|number|bool|any)\b", ("string", "number", "bool", "text", "list(string)", "map(string)")),
    (r" (==|>=|<|>|\+|&&|\?|:|=>) ", ("==", "+", "&&", "?", ">", "%")),
    (r'(?m)^resource "\w+" "\w+" \{()$', tuple(f"\n  {argument}" for argument in _ARGUMENTS)),
    (r'[{}\[\]"=,.()$]', ("",)),
    (r"(?m)^.*\n", ("", "§§")),
    (r'(?m)^(?:resource|variable|output) "(\w+)', ("nope", "")),
]


@dataclass(frozen=True)
class Mutant:
    """A module with the text from `start` to `end` replaced."""

    module: str
    start: int
    end: int
    text: str

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the changed module."""
        whole = MODULES[self.module]
        return {"main.tf": (whole[: self.start] + self.text + whole[self.end :]).encode()}


def recorded() -> dict[Mutant, bool]:
    """The recorded changes, each with whether Terraform accepts it."""
    with RECORDED.open(encoding="utf-8", newline="") as file:
        return {
            Mutant(row["module"], int(row["start"]), int(row["end"]), row["text"]): row["accepted"] == "true"
            for row in csv.DictReader(file)
        }


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """So many different changes, each kind of change as likely as any other."""
    generator, seen = random.Random(seed), set[Mutant]()
    while len(seen) < count:
        module, (place, texts) = generator.choice(sorted(MODULES)), generator.choice(_CHANGES)
        whole = MODULES[module]
        found = list(re.finditer(place, whole))
        if not found:
            continue
        match, text = generator.choice(found), generator.choice(texts)
        group = 1 if match.re.groups else 0
        before = match[group]
        new = ", ".join(reversed(before.split(", "))) if text == "swapped" else text.replace("§", before)
        mutant = Mutant(module, match.start(group), match.end(group), new)
        if new != before and mutant not in seen:
            seen.add(mutant)
            yield mutant


def main() -> None:
    """Record what Terraform says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDED)
    given = parser.parse_args()
    made = list(mutants(given.count, given.seed))
    with ThreadPoolExecutor() as threads, given.output.open("w", encoding="utf-8", newline="") as file:
        errors = threads.map(ask_terraform, (mutant.files for mutant in made))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["module", "start", "end", "text", "accepted"])
        for mutant, found in zip(made, errors, strict=True):
            if all(error.summary != _NOT_INSTALLED for error in found):
                writer.writerow([mutant.module, mutant.start, mutant.end, mutant.text, "false" if found else "true"])


if __name__ == "__main__":
    main()
