"""`touchstone doctor --deep`: proves this installation on small evaluations whose results are known.

Sandboxes are probed by trying to escape, estimators run on recorded outcomes, and every validator that is available
here judges right, wrong, cheating and endless fixes. All of it in a temporary folder, through the code of a real run.
The figures are those that the formulas in docs/metrics.md and docs/statistics.md give by hand; nothing here computes
them with the code that is being checked.
"""

import csv
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from typing import Any, Literal

from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.progress import track
from touchstone.validation.registry import Capability, probe_capabilities

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


# The proofs

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """The result of a trial: proven, wrong (the known answer did not come out), or not available on this machine."""

    name: str
    result: Literal["proven", "wrong", "not available"]
    detail: str


def prove_installation() -> list[Proof]:
    """Prove sandboxes, estimators and validators."""
    known = cases()
    with tempfile.TemporaryDirectory(prefix="touchstone-") as folder, track("known answers", len(known) + 2) as advance:
        capabilities = probe_capabilities(ValidationSettings())
        proofs = [_sandbox(each) for each in capabilities if each.kind == "sandbox"]
        advance(1)
        proofs.append(_estimators(Path(folder) / "recorded"))
        advance(1)
        usable = {each.name: each for each in capabilities if each.kind == "validator"}
        for number, case in enumerate(known):
            proofs.append(_validator(case, usable[case.validator], Path(folder) / str(number)))
            advance(1)
    return proofs


def verdict(proofs: Sequence[Proof]) -> tuple[bool, str]:
    """Whether the figures of this installation can be trusted, and that in one sentence."""
    wrong = [f"{proof.name} ({proof.detail})" for proof in proofs if proof.result == "wrong"]
    proven, missing = (
        [proof.name for proof in proofs if proof.result == result] for result in ("proven", "not available")
    )
    no_sandbox = not any(name.startswith("sandbox ") for name in proven)
    lacking = f"; not available here: {', '.join(missing)}" if missing else ""
    if wrong:
        return False, f"This installation's figures cannot be trusted: {'; '.join(wrong)}."
    if no_sandbox:
        return False, f"No sandbox holds here, so no fix can be validated; figures of recorded outcomes hold{lacking}."
    return True, f"This installation's figures can be trusted: proven were {', '.join(proven)}{lacking}."


def _sandbox(found: Capability) -> Proof:
    # One that is there and does not hold is never used; the others make up for it.
    return Proof(f"sandbox {found.name}", "proven" if found.usable else "not available", found.detail)


def _estimators(root: Path) -> Proof:
    """pass@k, an interval and a p-value from recorded outcomes."""
    name = "estimators"
    try:
        wrong = list(_wrong_figures(root))
    except Exception as error:  # Whatever goes wrong, the figures did not come out.
        return Proof(name, "wrong", " ".join(str(error).split()) or type(error).__name__)
    return Proof(name, "wrong" if wrong else "proven", "; ".join(wrong) or "pass@k, intervals and p-values as known")


def _wrong_figures(root: Path) -> Iterator[str]:
    from touchstone.evaluation import evaluate

    results = evaluate(write_recorded(root))
    rows = results["pass_at_k"].rows_by_key(["model", "k"], named=True, unique=True)
    (pair,) = results["model_comparison"].iter_rows(named=True)
    known = [
        *(
            (f"pass@{k} of {model}", rows[model, k]["pass_at_k"], known_pass_at_k(k, more))
            for more, model in enumerate(("first", "second"))
            for k in (1, 5)
        ),
        ("lower limit", rows["first", 1]["ci_low"], INTERVAL[0]),
        ("upper limit", rows["first", 1]["ci_high"], INTERVAL[1]),
        ("p-value", pair["p_value"], P_VALUE),
    ]
    for what, found, right in known:
        if found is None or abs(found - right) > _TOLERANCE:
            yield f"{what} is {found}, known to be {right:.6g}"


def _validator(case: Case, found: Capability, root: Path) -> Proof:
    """A validator on fixes of which only the right one may pass."""
    name = f"validator {case.name}"
    # One that asks for a setting is tried with it.
    if not found.usable and case.validator != "command":
        return Proof(name, "not available", found.detail)
    try:
        judged = _judged(case, root)
    except Exception as error:
        return Proof(name, "wrong", " ".join(str(error).split()) or type(error).__name__)
    if all(status == "validator_unavailable" or passed is None for status, passed in judged.values()):
        return Proof(name, "not available", "it judged nothing here; see `touchstone validators`")
    wrong = [f"{fix} fix: {status}" for fix, (status, passed) in judged.items() if passed is not (fix == "right")]
    return Proof(name, "wrong" if wrong else "proven", "; ".join(wrong) or f"{len(judged)} fixes judged as known")


def _judged(case: Case, root: Path) -> dict[str, tuple[str, bool | None]]:
    """Status and outcome of every fix."""
    from touchstone.evaluation import Evaluation, run

    evaluation = Evaluation.load(case.write(root))
    outcome = run(evaluation)
    with suppress(TouchstoneError):
        evaluation.store.require("outcomes")
        found = evaluation.store.scan("outcomes").select("iteration_id", "status", "passed").collect()
        return {fix: (status, passed) for fix, status, passed in found.iter_rows()}
    raise TouchstoneError("; ".join(outcome.failures) or "it has no outcomes")
