"""Grade made-up test logs with SWE-bench's own code, and write its run report; runs where swebench is installed."""

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace

from swebench.harness.constants import RUN_EVALUATION_LOG_DIR
from swebench.harness.grading import get_eval_report
from swebench.harness.reporting import make_run_report

source = random.Random(int(sys.argv[1]))
dataset = [{"instance_id": f"acme__tool-{number}"} for number in range(source.randrange(5, 60))]
predictions = {}
expected = {}
for instance in dataset:
    oid = instance["instance_id"]
    kind = source.choice(
        ["resolved", "fails", "breaks", "network", "memory", "empty", "apply", "timeout", "crash", "none"]
    )
    expected[oid] = kind
    if kind == "none":
        continue
    patch = "" if kind == "empty" else "diff --git a/x b/x\n"
    prediction = {"instance_id": oid, "model_name_or_path": "acme/fixer-1.5", "model_patch": patch}
    predictions[oid] = prediction
    if kind == "empty":
        continue
    folder = RUN_EVALUATION_LOG_DIR / "run.1" / "acme__fixer-1.5" / oid
    folder.mkdir(parents=True)
    (folder / "patch.diff").write_text(patch)
    (folder / "run_instance.log").write_text(
        {"apply": ">>>>> Patch Apply Failed:\nno", "crash": "Error creating container"}.get(kind, "fine") + "\n"
    )
    if kind in ("apply", "crash"):
        continue
    output = folder / "test_output.txt"
    if kind == "timeout":
        output.write_text("\n\nTimeout error: 1800 seconds exceeded.")
        continue
    lines = {"network": "Could not resolve host: x", "memory": "Killed"}.get(kind)
    if lines is None:
        words = ("FAILED" if kind == "fails" else "PASSED", "FAILED" if kind == "breaks" else "PASSED")
        tests = f"{words[0]} tests/test_a.py::test_fix\n{words[1]} tests/test_a.py::test_old"
        lines = f">>>>> Start Test Output\n{tests}\n>>>>> End Test Output"
    output.write_text(lines + "\n")
    spec = SimpleNamespace(
        instance_id=oid,
        log_parser="parse_log_pytest",
        eval_type="pass_and_fail",
        FAIL_TO_PASS=["tests/test_a.py::test_fix"],
        PASS_TO_PASS=["tests/test_a.py::test_old"],
    )
    report = get_eval_report(spec, prediction, str(output), include_tests_status=True)
    (folder / "report.json").write_text(json.dumps(report, indent=4))
make_run_report(predictions, dataset, "run.1")
Path("expected.txt").write_text(json.dumps(expected))
