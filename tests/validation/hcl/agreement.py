"""How often the static checker and Terraform agree: `python -m tests.validation.hcl.agreement`.

On the recorded modules always. With `--program` (and `--plugin-dir`, a mirror with the AWS provider), both also judge
the fixes of the Terraform sample.
"""

import argparse
import csv
import tempfile
from pathlib import Path

from tests.validation.hcl.recordings import TERRAFORM, comparable, recordings
from touchstone.config.validation import ValidationSettings
from touchstone.validation.hcl import check_module
from touchstone.validation.outcomes import outcome_rows
from touchstone.validation.session import ValidationSession
from touchstone.validation.targets import Targets

SAMPLE = Path(__file__).parents[3] / "data" / "sample" / "terraform"


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
    found = [(comparable(check_module(each.root_files, None).diagnostics), each.errors) for each in recordings()]
    verdicts = sum(bool(ours) == bool(theirs) for ours, theirs in found)
    errors = sum(ours == theirs for ours, theirs in found)
    print(f"recorded modules (Terraform {TERRAFORM}): same verdict {verdicts}, same errors {errors} of {len(found)}")
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
