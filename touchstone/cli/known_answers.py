"""Small evaluations whose results are known, for `touchstone doctor --deep`: right, wrong, cheating and endless fixes.

The figures are those that the formulas in docs/metrics.md and docs/statistics.md give by hand; nothing here computes
them with the code that is being checked.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from typing import Any

_TESTS = """\
from calc import add


def test_small():
    assert add(2, 3) == 5


def test_zero():
    assert add(0, 0) == 0
"""
_EQUAL_TO_ALL = "class Same:\n    def __eq__(self, other):\n        return True\n\ndef add(a, b):\n    return Same()\n"
_PYTHON = {
    "right": "def add(a, b):\n    return a + b\n",
    "wrong": "def add(a, b):\n    return a * b\n",
    "cheating": "import os\nos._exit(0)\n",
    "endless": "def add(a, b):\n    while True:\n        pass\n",
}
_RUST = "pub fn add(a: i64, b: i64) -> i64 {{ {} }}\n"
_RUST_TESTS = "use calc::add;\n#[test]\nfn small() { assert_eq!(add(2, 3), 5); }\n"
_TERRAFORM = 'variable "name" {{\n  type = string\n}}\n\noutput "greeting" {{\n  value = {}\n}}\n'


@dataclass(frozen=True)
class Case:
    """A problem for one validator, and its fixes: each `right` one must pass, the others must not."""

    name: str
    validator: str
    files: Mapping[str, str]
    filename: str
    fixes: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    language: str = ""

    def write(self, root: Path) -> Path:
        """Write it as an evaluation and return its configuration."""
        for name, text in self.files.items():
            place = root / "clones" / "problem" / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        problem = {"oid": "known", "filename": self.filename, "working_directory": "problem"}
        problem |= {"reference_fix": self.fixes["right"], **({"language": self.language} if self.language else {})}
        write_csv(root / "problems.csv", [problem])
        fixes = [{"oid": "known", "iteration_id": name, "fixed_code": text} for name, text in self.fixes.items()]
        write_csv(root / "model_fixes.csv", fixes)
        validation = {"limits": {"seconds": 2}, "workers": 1, **self.settings}
        return write_config(root, clones_dir="clones", validation=validation, checks={"max_untrusted_share": 1.0})


def cases() -> list[Case]:
    """A case per validator."""
    forged = {**_PYTHON, "forged": _EQUAL_TO_ALL}
    python = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": _TESTS}
    cargo = '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'
    rust = {"Cargo.toml": cargo, "src/lib.rs": _RUST.format("a - b"), "tests/calc.rs": _RUST_TESTS}
    rust_fixes = {
        "right": _RUST.format("a + b"),
        "wrong": _RUST.format("a * b"),
        "cheating": _RUST.format("let _ = (a, b); std::process::exit(0)"),
    }
    terraform = {"main.tf": _TERRAFORM.format("var.nam")}
    terraform_fixes = {
        "right": _TERRAFORM.format("var.name"),
        "wrong": _TERRAFORM.format("var.other"),
        "cheating": "",
        "broken": _TERRAFORM.format("(("),
    }
    shell = {"answer.sh": "exit 1\n", "check.sh": 'test "$(sh answer.sh)" = 42\n'}
    shell_fixes = {"right": "echo 42\n", "wrong": "echo 41\n", "endless": "while :; do :; done\n"}
    command = {"arguments": ["/bin/sh", "{directory}/check.sh"]}
    return [
        Case("python", "python", python, "calc.py", forged, {}),
        Case("hcl", "hcl", terraform, "main.tf", terraform_fixes, {"validators": {"terraform": "hcl"}}),
        Case(
            "terraform", "terraform", terraform, "main.tf", terraform_fixes, {"validators": {"terraform": "terraform"}}
        ),
        Case("rust", "rust", rust, "src/lib.rs", rust_fixes, {"limits": {}}),
        Case(
            "command",
            "command",
            shell,
            "answer.sh",
            shell_fixes,
            {"validators": {"shell": "command"}, "command": command},
            language="shell",
        ),
    ]


# Recorded outcomes: passes of ten attempts at each of eight problems. The second model passes once more everywhere.
PASSES = (0, 1, 2, 3, 4, 5, 6, 7)
ATTEMPTS = 10
# Eight differences of the same sign: the sign-flip test gives 2 / 2^8.
P_VALUE = 2 / 2**8
# Of the first model's pass@1, .35: Wilson's interval with Student's t at .975 and 7 degrees of freedom, and with
# 8 x .35 x .65 / v units, where v = .06 + exp(-8 x .35 / .75) x (.35 x .65 - .06) and .06 is the variance of the rates.
INTERVAL = (0.17973417620938015, 0.5695636514730938)


def write_recorded(root: Path) -> Path:
    """Two models with recorded outcomes, as an evaluation; returns its configuration."""
    problems = [f"p{place}" for place in range(len(PASSES))]
    write_csv(root / "problems.csv", [{"oid": oid, "filename": f"{oid}.py"} for oid in problems])
    for model, more in (("first", 0), ("second", 1)):
        rows = [
            {"oid": oid, "iteration_id": place, "plausible_fix": place < passes + more}
            for oid, passes in zip(problems, PASSES, strict=True)
            for place in range(ATTEMPTS)
        ]
        write_csv(root / f"{model}_fixes.csv", rows)
    return write_config(root, k_values=[1, 5])


def known_pass_at_k(k: int, more: int) -> float:
    """The mean over the problems of 1 - C(n - c, k) / C(n, k), in exact integers."""
    total = comb(ATTEMPTS, k)
    return sum(1 - comb(ATTEMPTS - passes - more, k) / total for passes in PASSES) / len(PASSES)


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows with the same keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_config(root: Path, **keys: object) -> Path:
    """Write the configuration of an evaluation in `root`."""
    path = root / "evaluation_config.json"
    fixed = {"fixes_dir": ".", "output_dir": "out", "publish": {"report": False, "charts": False, "csv": False}}
    path.write_text(json.dumps({**fixed, "k_values": [1], **keys}))
    return path
