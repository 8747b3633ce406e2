"""Write a run with Terminal-Bench's own classes; runs where terminal-bench is installed."""

import random
import sys
from pathlib import Path

from terminal_bench.agents.failure_mode import FailureMode
from terminal_bench.harness.models import BenchmarkResults, RunMetadata, TrialResults

source = random.Random(int(sys.argv[1]))
attempts = source.randrange(1, 11)
results = BenchmarkResults()
for task in range(source.randrange(1, 30)):
    for attempt in range(1, attempts + 1):
        trial = TrialResults(
            trial_name=f"task-{task}.{attempt}-of-{attempts}.run",
            task_id=f"task-{task}",
            instruction="repair it",
            is_resolved=source.choice([True, False, None]),
            failure_mode=source.choice(list(FailureMode)),
            total_input_tokens=source.choice([None, 0, 1200]),
        )
        results.results.append(trial)
        folder = Path("run", trial.task_id, trial.trial_name)
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(trial.model_dump_json(indent=4))
Path("run", "results.json").write_text(results.model_dump_json(indent=4))
metadata = RunMetadata(
    run_id="run",
    dataset_name="tiny-core",
    output_path="runs",
    agent_name="terminus",
    no_rebuild=False,
    cleanup=True,
    log_level=20,
    n_attempts=attempts,
    model_name="acme/fixer",
    accuracy=results.accuracy,
    pass_at_k=results.pass_at_k,
)
Path("run", "run_metadata.json").write_text(metadata.model_dump_json(indent=4))
