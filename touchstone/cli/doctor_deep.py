"""`touchstone doctor --deep`: proves this installation on evaluations whose results are known.

Sandboxes are probed by trying to escape, estimators run on recorded outcomes, and every validator that is available
here judges right, wrong, cheating and endless fixes. All of it in a temporary folder, through the code of a real run.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from touchstone.cli.known_answers import INTERVAL, P_VALUE, Case, cases, known_pass_at_k, write_recorded
from touchstone.config.validation import ValidationSettings
from touchstone.errors import TouchstoneError
from touchstone.progress import track
from touchstone.validation.registry import Capability, probe_capabilities

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """What was tried: proven, wrong (the known answer did not come out), or not available on this machine."""

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
    from touchstone.api import evaluate

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
