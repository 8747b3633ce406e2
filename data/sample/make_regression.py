"""The sample once more, and then with a regression put in, to see the gate at work. `make demo` runs all of it.

python data/sample/make_regression.py copy DIR     the sample, with a config whose gate fails
python data/sample/make_regression.py break DIR    cedar-coder no longer solves every second Terraform problem
"""

import csv
import json
import shutil
import sys
from pathlib import Path

SAMPLE = Path(__file__).parent
MODEL = "cedar-coder"
CONFIG = {
    "problems_csv": "problems.csv",
    "fixes_dir": ".",
    "output_dir": "results",
    "k_values": [1, 5, 10],
    "comparison": {"on_worse": "fail"},
}


def copy(folder: Path) -> None:
    """Start anew with the files of the sample."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted(SAMPLE.glob("*.csv")):
        shutil.copy(path, folder)
    (folder / "evaluation_config.json").write_text(json.dumps(CONFIG, indent=4) + "\n")


def put_in(folder: Path) -> int:
    """Turn what the model solved of every second Terraform problem into failures; returns how many attempts."""
    path = folder / f"{MODEL}_fixes.csv"
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    place = {name: header.index(name) for name in header}
    broken = 0
    for row in rows:
        # Rows of another length are there to be refused.
        if len(row) == len(header) and _is_hit(row[place["oid"]]) and row[place["plausible_fix"]] == "true":
            tests = int(row[place["tests_passed"]])
            told = {"plausible_fix": "false", "classification": "fail", "weighted_score": "0.2"}
            told |= {"tests_passed": "0", "tests_failed": str(tests)}
            for name, value in told.items():
                row[place[name]] = value
            broken += 1
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return broken


def _is_hit(oid: str) -> bool:
    return oid.startswith("tf-") and int(oid.removeprefix("tf-")) % 2 == 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["copy", folder]:
            copy(Path(folder))
        case ["break", folder]:
            print(f"{MODEL}: {put_in(Path(folder))} attempts that passed now fail")
        case _:
            sys.exit("error: say `copy DIR` or `break DIR`")
