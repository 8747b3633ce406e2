"""How often the static checker and Terraform agree: `python -m tests.validation.hcl.agreement`.

On the recorded modules always. With `--program` (and `--plugin-dir`, a mirror with the AWS provider), both also judge
the fixes of the Terraform sample.
"""

import argparse
import csv
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.validation.hcl.recordings import TERRAFORM, comparable, recordings
from touchstone.config.validation import ValidationSettings
from touchstone.validation.hcl import check_module, evaluation, loading, module, references
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.protocol import Diagnostic
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets

SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "terraform"


def _nothing(*_: object) -> list[Diagnostic]:
    return []


def _none(*_: object) -> None:
    return None


# Each check, and what it would be without it.
CHECKS: list[tuple[ModuleType, str, Callable[..., Any]]] = [
    *((loading, name, _nothing) for name in ("_name_errors", "_type_errors", "_default_errors", "_constant_errors")),
    *((loading, name, _nothing) for name in ("_condition_errors", "_repetition_errors", "_dependency_errors")),
    *((loading, name, _nothing) for name in ("_identity_errors", "_reserved_errors", "_block_in_locals_errors")),
    *((loading, name, _nothing) for name in ("_lifecycle_errors", "body_errors")),
    (module, "body_errors", _nothing),
    (module, "duplicate_errors", _nothing),
    (evaluation, "cycles", _nothing),
    (evaluation, "call_errors", _nothing),
    (evaluation, "resource_errors", _nothing),
    (evaluation, "type_error", _none),
    (references, "_check_self", lambda *_: references.ReferenceCheck()),
    (references, "_check_module", lambda *_: references.ReferenceCheck()),
    (references, "_check_resource", lambda *_: references.ReferenceCheck()),
    (references, "_check_builtin", _nothing),
    (references, "_attribute_errors", _nothing),
    (references, "_wrong_key", _none),
    (references, "_legacy_count", _none),
]


@dataclass(frozen=True)
class Agreement:
    """How many of the modules have the same verdict, and how many the same errors."""

    modules: int
    same_verdict: int
    same_errors: int


def recorded_agreement() -> Agreement:
    """The agreement on the recorded modules."""
    recorded = recordings()
    found = [comparable(check_module(each.root_files, None).diagnostics) for each in recorded]
    return Agreement(
        len(recorded),
        sum(bool(ours) == bool(each.errors) for ours, each in zip(found, recorded, strict=True)),
        sum(ours == each.errors for ours, each in zip(found, recorded, strict=True)),
    )


def unneeded_checks() -> list[str]:
    """The checks without which no recorded module would be judged differently."""
    every = recorded_agreement().same_errors
    return [name for where, name, without in CHECKS if _agreement_without(where, name, without) == every]


def _agreement_without(where: ModuleType, name: str, without: Callable[..., Any]) -> int:
    with _replaced(where, name, without):
        return recorded_agreement().same_errors


@contextmanager
def _replaced(where: ModuleType, name: str, by: Callable[..., Any]) -> Iterator[None]:
    original = getattr(where, name)
    module.read_file.cache_clear()
    setattr(where, name, by)
    try:
        yield
    finally:
        setattr(where, name, original)
        module.read_file.cache_clear()


def sample_verdicts(validator: str, program: Path, plugin_dir: Path | None) -> dict[tuple[str, ...], bool | None]:
    """Whether each fix of the sample passes."""
    settings = ValidationSettings.model_validate(
        {"validators": {"terraform": validator}, "terraform": {"program": program, "plugin_dir": plugin_dir}}
    )
    problems = _rows(SAMPLE / "problems.csv")
    fixes = [{**row, "model": path.stem} for path in sorted(SAMPLE.glob("*_fixes.csv")) for row in _rows(path)]
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-") as folder,
        ValidationSession(settings, Path(folder) / "cache", Path(folder) / "scratch") as session,
    ):
        targets = Targets(SAMPLE / "clones", settings).find(problems)
        found = outcome_rows(({"tier": "T0", **fix} for fix in fixes), targets, session)
    return {(row["model"], row["oid"], row["iteration_id"]): row["passed"] for row in found}


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, help="terraform or tofu")
    parser.add_argument("--plugin-dir", type=Path, help="a mirror of the providers")
    given = parser.parse_args()
    found = recorded_agreement()
    print(f"recorded modules (Terraform {TERRAFORM}): same verdict {found.same_verdict} of {found.modules},", end=" ")
    print(f"same errors {found.same_errors} of {found.modules}")
    print(f"checks that no recorded module needs: {', '.join(unneeded_checks()) or 'none'}")
    if given.program is None:
        print("fixes of the sample: not measured (--program, --plugin-dir)")
        return
    static, real = (sample_verdicts(name, given.program, given.plugin_dir) for name in ("hcl", "terraform"))
    same = [key for key in real if real[key] == static[key]]
    print(f"fixes of the sample: same verdict {len(same)} of {len(real)}")
    for key in sorted(real.keys() - same):
        print(f"  {' '.join(key)}: hcl {static[key]}, terraform {real[key]}")


if __name__ == "__main__":
    main()
