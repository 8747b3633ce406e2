"""The figures that Harbor states in the result of a job, and the same by its rules from the trials."""

from collections.abc import Mapping, Sequence

from touchstone.ingest.adapters.table import Cells, Record, ReportedFigure
from touchstone.ingest.adapters.tool_figures import mean, number_of, pass_at_k, reported_pass_at_k
from touchstone.text import counted


def job_figures(result: Mapping[str, object], records: Sequence[Record]) -> list[ReportedFigure]:
    """The mean reward and pass@k of every agent, model and dataset. Harbor counts a missing reward as 0."""
    stats = result.get("stats")
    evals = stats.get("evals") if isinstance(stats, dict) else None
    by_key: dict[str | None, list[Cells]] = {}
    for record in records:
        if record.kind is None:
            by_key.setdefault(record.cells["evals_key"], []).append(record.cells)
    figures: list[ReportedFigure] = []
    for key, stated in evals.items() if isinstance(evals, dict) else ():
        if isinstance(stated, dict) and key in by_key:
            figures += _eval_figures(stated, by_key[key])
    return figures


def _eval_figures(stated: Mapping[str, object], trials: Sequence[Cells]) -> list[ReportedFigure]:
    model, suite, note = trials[0]["llm_name"] or "", trials[0]["suite"], _note(trials)
    rewards = [number_of(cells["reward"]) or 0.0 for cells in trials]
    figures = [ReportedFigure(model, "mean", _stated_mean(stated), mean(rewards), suite, note)]
    solved = [(cells["oid"], reward == 1) for cells, reward in zip(trials, rewards, strict=True)]
    figures += [
        ReportedFigure(model, f"pass_at_{k}", reported, pass_at_k(solved, k), suite, note)
        for k, reported in reported_pass_at_k(stated.get("pass_at_k")).items()
    ]
    return figures


def _stated_mean(stated: Mapping[str, object]) -> float | None:
    """The mean among the metrics of the job; with several rewards each has its own, under the reward's name."""
    metrics = stated.get("metrics")
    for metric in metrics if isinstance(metrics, list) else []:
        if isinstance(metric, dict):
            value = number_of(metric.get("mean", metric.get("reward")))
            if value is not None:
                return value
    return None


def _note(trials: Sequence[Cells]) -> str | None:
    undecided = sum(cells["passed"] is None for cells in trials)
    if not undecided:
        return None
    which = counted(undecided, "undecided trial", "undecided trials")
    return f"Harbor counts {which} (sandbox, provider, verifier) with its reward, or 0; Touchstone leaves them out"
