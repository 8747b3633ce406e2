"""One attempt's trouble is one attempt's outcome: no fix stops the run, or takes the others of its batch along."""

import errno
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.validation.attacks.arena import BAD, GOOD, Run, problem_in
from tests.validation.pytest_runner.support import sandbox_or_skip
from touchstone.validation.fixes.apply_fix import MAX_FIX_BYTES
from touchstone.validation.protocol import Availability, Diagnostic, Job, Report
from touchstone.validation.validators.python import PythonValidator

# What a `SyntaxError` of the fix's own making says about its position.
POSITIONS = ["'text'", "-5", "10 ** 30", "10 ** 5000", "1.5", "float('nan')", "True", "[]", "{}", "b'x'", "object()"]
SYNTAX_ERROR = "raise SyntaxError('no', ('solution.py', {position}, {position}, 'x'))\n"
# Much more CPU time than a linear program needs, and much less than a quadratic one.
CPU_SECONDS = 30


@pytest.fixture
def run(tmp_path: Path) -> Run:
    sandbox_or_skip(tmp_path, "bubblewrap")
    return problem_in(tmp_path)


# By day: no number, a negative one, and one that no machine word holds.
@pytest.mark.services
@pytest.mark.parametrize("positions", [POSITIONS[:3], pytest.param(POSITIONS, marks=pytest.mark.nightly)])
def test_a_syntax_error_at_a_position_that_is_none_fails_and_fails_again_from_the_cache(
    run: Run, positions: list[str]
) -> None:
    fixes = [GOOD, *(SYNTAX_ERROR.format(position=position) for position in positions), BAD]
    first, *others, last = found = run.statuses(*fixes)
    assert (first, last) == ("passed", "failed") and set(others) <= {"failed", "no_report"}
    assert run.statuses(*fixes) == found


class Troubled:
    """Fails on some fixes in ways that no validator should."""

    def validate(self, jobs: Sequence[Job]) -> Iterator[Report]:
        for job in jobs:
            text = job.tree.read(job.problem.path).decode()
            if "bug" in text:
                raise ValueError("the validator has a bug")
            if "full" in text:
                raise OSError(errno.ENOSPC, "No space left on device")
            wrong = Diagnostic("error", "wrong", line="3" if "malformed" in text else 3)  # type: ignore[arg-type]
            yield Report("passed", "full") if "a + b" in text else Report("failed", "full", (wrong,))


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PythonValidator, "validate", Troubled.validate)
    monkeypatch.setattr(PythonValidator, "probe", lambda _: Availability(True, ""))


def test_an_exception_costs_the_attempt_that_causes_it_and_no_other(run: Run, troubled: None) -> None:
    fixes = ["# bug", GOOD, BAD, "# malformed", f"{GOOD}#"]
    assert run.statuses(*fixes) == ["no_report", "passed", "failed", "no_report", "passed"]


def test_a_full_disk_of_the_machine_is_no_failure_of_the_fix(run: Run, troubled: None) -> None:
    assert run.statuses("# full", GOOD) == ["sandbox_error", "passed"]


@pytest.mark.nightly
def test_a_fix_that_kills_the_process_that_validates_it_takes_no_other_along(run: Run) -> None:
    """Without a sandbox it can. The others of its batch are validated again, each alone."""
    kill = f"""
import os
os.kill(int(open(f"/proc/{{os.getppid()}}/stat").read().rpartition(")")[2].split()[1]), {signal.SIGKILL:d})
"""
    others = [f"{GOOD}# {number}" for number in range(9)]
    statuses = run.statuses(kill, *others, workers=2, unsandboxed=True, limits={"seconds": 60})
    assert statuses == ["no_report", *["passed"] * 9]


@pytest.mark.nightly
def test_many_busy_children_cost_no_neighbour_its_verdict(run: Run) -> None:
    """The parent ignores that they end, so their time is not added to its own."""
    busy = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(28):
    if os.fork() == 0:
        while True: pass
while True: pass
"""
    others = [f"{GOOD}# {number}" for number in range(15)]
    statuses = run.statuses(busy, *others, workers=2, limits={"seconds": 4})
    assert statuses == ["timeout", *["passed"] * 15]


# A quarter of the longest fix that is looked at: quadratic work would still take minutes.
LETTERS = MAX_FIX_BYTES // 4
LONG_ANSWERS = {
    "one word after let": "let " + "a" * LETTERS,
    "spaces after import": "import" + " " * LETTERS + "!",
    "spaces after a name": "x" + " " * LETTERS + "!",
    "a dotted name": "from " + "a." * (LETTERS // 2),
    "angle brackets": "<<" * (LETTERS // 2),
    "colons after if": "if " + ":" * LETTERS + "!",
    "nothing but spaces": " " * LETTERS + "!",
    "quotes": "x" + "'" * LETTERS,
    "lines of let": ("let " + "a" * 1000 + "\n") * (LETTERS // 1010),
    "fences": "```\n" * (LETTERS // 4),
    "fences that name a language": "```x\n" * (LETTERS // 5),
    "fences of growing length": "\n".join("`" * length for length in range(3, 950)),
    "one long fence": "`" * LETTERS,
    "CDATA": "<![CDATA[" * (LETTERS // 9) + "]]>",
    "escaped CDATA": "<![CDATA[" + "]]]]><![CDATA[>" * (LETTERS // 15) + "]]>",
}


REPEATED = "".join(f"line {number}\nx\n" * 100 for number in range(1000))
INTERLEAVED = "".join(f"line {number}\nx{number}\n" for number in range(40_000))


def assert_bounded(function: str, inputs: dict[str, str]) -> None:
    """Call a function of one text on every input, in one process with limited CPU time."""
    code = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_SECONDS}, {CPU_SECONDS}))
{function}
for name, text in json.load(sys.stdin).items():
    print(name, flush=True)
    run(text)
"""
    ended = subprocess.run([sys.executable, "-c", code], input=json.dumps(inputs).encode(), capture_output=True)
    assert ended.returncode == 0, (ended.stdout.decode().splitlines()[-1:], ended.stderr[-500:])


@pytest.mark.nightly
def test_unwrapping_takes_time_in_proportion_to_the_answer() -> None:
    answers = {name: f"{text}\n\n```\nx = 1\n```\n" for name, text in LONG_ANSWERS.items()}
    assert_bounded("from touchstone.validation.fixes.extract_code import extract_code as run", answers)


@pytest.mark.nightly
@pytest.mark.parametrize("text", [REPEATED, INTERLEAVED], ids=["repeated", "interleaved"])
def test_finding_the_lines_of_a_fix_is_bounded(text: str) -> None:
    function = """
from pathlib import Path
from touchstone.validation.fixes.apply_fix import Fix, apply_fix
from touchstone.validation.protocol import Problem, Tree
lines = "".join(f"line {number}\\n" for number in range(40_000)).encode()
problem = Problem("o1", "main.tf", Path("/"), line_start=2, line_end=3)
tree = lambda text: Tree(Path("/"), ("main.tf",), {"main.tf": lines if "39999" in text else lines[:8890]})
run = lambda text: apply_fix(tree(text), Fix(text, "file"), problem)
"""
    assert_bounded(function, {"lines": f"x\n{text}"})
