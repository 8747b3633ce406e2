"""`touchstone doctor --deep`: a sound installation proves itself, a broken one is noticed."""

import os
import subprocess
import sys

import pytest

from tests.conftest import Command
from touchstone.cli import doctor_deep
from touchstone.cli.doctor_deep import Proof, cases, verdict

BROKEN_ESTIMATOR = """\
import touchstone.metrics.pass_at_k as metric
right = metric.pass_at_k_of
import numpy as np
name, = (name for name in vars(metric) if name == "pass_at_k")
make = getattr(metric, name)
def wrong(*arguments):
    import polars as pl
    return make(*arguments).with_columns(pl.col("pass_at_k") * 0.99)
metric.pass_at_k = wrong
"""
NO_SANDBOX = """\
from touchstone.validation.sandbox import backends
for kind in (backends.Bubblewrap, backends.Landlock):
    kind.missing = lambda self: "switched off"
"""
TRUSTING_VERDICTS = """\
import touchstone.validation.outcomes as outcomes
rows = outcomes.outcome_rows
import touchstone.validation.stage as stage
def trusting(*arguments, **options):
    return [{**row, "passed": True, "status": "passed"} for row in rows(*arguments, **options)]
outcomes.outcome_rows = stage.outcome_rows = trusting
"""


def doctor(breaking: str = "", only: str = "") -> "subprocess.CompletedProcess[str]":
    """`touchstone doctor --deep` in a process of its own, of which something is broken first."""
    code = f"{breaking}\nfrom touchstone.cli import doctor_deep, main\n"
    code += (
        f"cases = doctor_deep.cases\ndoctor_deep.cases = lambda: [case for case in cases() if case.name in {only!r}]\n"
    )
    code += "main.main()\n"
    command = [sys.executable, "-c", code, "doctor", "--deep"]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_a_sound_installation_proves_itself() -> None:
    done = doctor(only="".join(case.name for case in cases()))
    *_, sentence = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert sentence.startswith("This installation's figures can be trusted: proven were sandbox bubblewrap")
    for name in ("estimators", "validator python", "validator hcl"):
        assert name in sentence


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("breaking", "only", "said"),
    [
        (BROKEN_ESTIMATOR, "", "cannot be trusted: estimators (pass@1 of first is 0.3465, known to be 0.35"),
        (NO_SANDBOX, "hcl", "No sandbox holds here, so no fix can be validated"),
        (TRUSTING_VERDICTS, "hcl", "cannot be trusted: validator hcl (broken fix: passed; cheating fix: passed"),
    ],
    ids=["estimator", "sandbox", "verdicts"],
)
def test_a_broken_installation_is_noticed(breaking: str, only: str, said: str) -> None:
    done = doctor(breaking, only)
    assert done.returncode == 1, done.stdout + done.stderr
    assert said in " ".join(done.stdout.split())


PROVEN, ABSENT = Proof("sandbox landlock", "proven", "holds"), Proof("validator rust", "not available", "no cargo")
WRONG = Proof("validator hcl", "wrong", "wrong fix: passed")


@pytest.mark.parametrize(
    ("proofs", "expected"),
    [
        ([PROVEN, ABSENT], (True, "can be trusted: proven were sandbox landlock; not available here: validator rust.")),
        ([PROVEN, WRONG], (False, "cannot be trusted: validator hcl (wrong fix: passed).")),
        ([ABSENT], (False, "No sandbox holds here")),
    ],
)
def test_the_sentence(proofs: list[Proof], expected: tuple[bool, str]) -> None:
    trusted, sentence = verdict(proofs)
    assert trusted is expected[0] and expected[1] in sentence


def test_the_command_prints_proofs_and_exits_by_them(touchstone: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_deep, "prove_installation", lambda: [PROVEN, WRONG])
    done = touchstone("doctor", "--deep")
    assert done.returncode == 1 and done.stdout.splitlines()[-1].startswith("This installation's figures cannot be")
    assert "wrong fix: passed" in done.stdout
