"""Write a job with Harbor's own classes, from the trial given as a file; runs where harbor is installed."""

import json
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

from harbor.metrics.mean import Mean
from harbor.models.job.result import JobResult, JobStats
from harbor.models.trial.error_policy import ERROR_POLICIES
from harbor.models.trial.result import TrialResult
from harbor.utils.pass_at_k import compute_pass_at_k_by_evals

source = random.Random(int(sys.argv[1]))
good = json.loads(Path(sys.argv[2]).read_text())
attempts = source.randrange(1, 7)
trials = []
for task in range(source.randrange(1, 30)):
    for attempt in range(attempts):
        name = f"task-{task}__{attempt}"
        start = datetime.fromisoformat(good["started_at"]) + timedelta(minutes=source.randrange(10_000))
        raised = source.choice([None, None, *ERROR_POLICIES])
        exception = {
            "exception_type": raised,
            "exception_message": "it happened",
            "exception_traceback": "",
            "occurred_at": good["started_at"],
        }
        reward = source.choice([0, 1, None])
        trial = good | {
            "task_name": f"task-{task}",
            "trial_name": name,
            "started_at": start.isoformat(),
            "finished_at": (start + timedelta(minutes=1)).isoformat(),
            "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
            "exception_info": exception if raised else None,
        }
        trials.append(TrialResult.model_validate(trial))
        folder = Path("job", name)
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(trials[-1].model_dump_json(indent=4))
stats = JobStats.from_trial_results(trials, n_total_trials=len(trials))
for key, figures in compute_pass_at_k_by_evals(trials).items():
    stats.evals[key].pass_at_k = figures
for figures in stats.evals.values():
    rewards = [trial.verifier_result.rewards if trial.verifier_result else None for trial in trials]
    figures.metrics = [Mean().compute(rewards)]
job = JobResult(id=good["config"]["job_id"], started_at=datetime.now(), n_total_trials=len(trials), stats=stats)
Path("job", "result.json").write_text(job.model_dump_json(indent=4, exclude={"trial_results"}))
Path("policies.txt").write_text(
    json.dumps({name: [policy.cause.value, policy.reward_valid] for name, policy in ERROR_POLICIES.items()})
)
