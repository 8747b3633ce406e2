"""Run by a Python that has inspect_ai: makes logs with its mock model and prints what Inspect itself reads in them.

Usage: python inspect_task.py FOLDER
"""

import json
import math
import sys
from pathlib import Path

# Not a dependency of this project.
from inspect_ai import Epochs, Task, eval, eval_retry, task  # type: ignore[import-not-found]
from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log, write_eval_log  # type: ignore[import-not-found]
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]
from inspect_ai.scorer import Score, accuracy, mean, scorer, stderr  # type: ignore[import-not-found]
from inspect_ai.solver import generate, solver  # type: ignore[import-not-found]

REDUCERS = ["mean", "median", "mode", "max", "pass_at_1", "pass_at_2", "pass_k_2", "at_least_2"]
NAN = float("nan")
LETTERS = {"a": "CCIP", "b": "IINC", 3: "CCCC", "d/e": "PPPI", "é": "NNNN"}
ODD = {"a": [True, 1, 0.5, "yes"], "b": [NAN, "no", 0.25, "left"], "c": [NAN, NAN, NAN, NAN], "d": ["0.5", 7, 0, False]}
DICTS = {"a": [{"ok": "C", "style": 0.25}, {"ok": "I", "style": NAN}, {"ok": "C", "style": 1}, {"ok": "P", "style": 0}]}


@scorer(metrics=[accuracy(), stderr()])
def planned():  # type: ignore[no-untyped-def]
    async def score(state, target):  # type: ignore[no-untyped-def]
        return Score(value=state.metadata["plan"][state.epoch - 1], answer=state.output.completion)

    return score


@scorer(metrics={"ok": [accuracy(), stderr()], "*": [mean()]})
def keyed():  # type: ignore[no-untyped-def]
    async def score(state, target):  # type: ignore[no-untyped-def]
        return Score(value=state.metadata["plan"][state.epoch - 1])

    return score


@solver
def failing():  # type: ignore[no-untyped-def]
    """Fails in the second epoch of every sample, and in the first one at sample b."""

    async def solve(state, generate):  # type: ignore[no-untyped-def]
        state = await generate(state)
        if state.epoch == 2 or (state.epoch, state.sample_id) == (1, "b"):
            raise RuntimeError("the sandbox died")
        return state

    return solve


@solver
def chatty():  # type: ignore[no-untyped-def]
    async def solve(state, generate):  # type: ignore[no-untyped-def]
        for _ in range(10):
            state = await generate(state)
        return state

    return solve


def made(name, plans, solvers, scorers, **options):  # type: ignore[no-untyped-def]
    dataset = [Sample(id=id, input="fix it", target="x", metadata={"plan": list(plan)}) for id, plan in plans.items()]
    return Task(dataset, solver=solvers, scorer=scorers, name=name, **{"epochs": Epochs(4, REDUCERS)} | options)


@task
def stops():  # type: ignore[no-untyped-def]
    return made("stops", LETTERS, [failing()], planned())


def model():  # type: ignore[no-untyped-def]
    def output():  # type: ignore[no-untyped-def]
        answer = ModelOutput.from_content("mockllm/acme", "a fix")
        answer.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10, input_tokens_cache_read=2)
        return answer

    return get_model("mockllm/acme", custom_outputs=(output() for _ in range(10_000)))


def described(path: Path) -> dict[str, object]:
    """What Inspect reads: outcomes by sample and epoch, and the figures of its results."""
    log = read_eval_log(str(path))
    samples = []
    for sample in log.samples or []:
        values = {name: score.value for name, score in (sample.scores or {}).items()}
        usage = sample.model_usage.get("mockllm/acme")
        samples.append(
            {
                "id": str(sample.id),
                "epoch": sample.epoch,
                "values": values,
                "error": sample.error.message if sample.error else None,
                "limit": sample.limit.type if sample.limit else None,
                "retries": len(sample.error_retries or []),
                "invalidated": sample.invalidation is not None,
                "input_tokens": usage.input_tokens if usage else None,
                "total_time": sample.total_time,
                "uuid": sample.uuid,
            }
        )
    figures = [
        [score.scorer, score.name, score.reducer, key, None if math.isnan(metric.value) else metric.value]
        for score in (log.results.scores if log.results else [])
        for key, metric in score.metrics.items()
    ]
    return {"path": str(path), "status": log.status, "task": log.eval.task, "samples": samples, "figures": figures}


def main(folder: Path) -> None:
    runs = {
        "letters": ([generate()], planned(), {}),
        "odd": ([generate()], planned(), {}),
        "dicts": ([generate()], keyed(), {}),
        "errors": ([failing()], planned(), {"fail_on_error": False}),
        "by_default": ([failing()], planned(), {"fail_on_error": False, "epochs": 4}),
        "every_epoch": ([failing()], planned(), {"fail_on_error": False, "epochs": Epochs(4, [])}),
        "limits": ([chatty()], planned(), {"message_limit": 6}),
    }
    plans = {"odd": ODD, "dicts": DICTS}
    for form in ("eval", "json"):
        for name, (solvers, scorers, options) in runs.items():
            tasks = made(name, plans.get(name, LETTERS), solvers, scorers, **options)
            eval(tasks, model=model(), log_dir=str(folder / form), log_format=form, display="none", retry_on_error=1)
    (stopped,) = eval(stops(), model=model(), log_dir=str(folder / "stopped"), display="none", max_samples=1)
    eval_retry(stopped.location, log_dir=str(folder / "retried"), display="none", max_samples=1)
    source = next((folder / "eval").glob("*letters*"))
    edited = read_eval_log(str(source))
    uuids = [sample.uuid for sample in edited.samples[:2]]
    edited = invalidate_samples(edited, uuids, ProvenanceData(author="me", reason="wrong input"))
    (folder / "edited").mkdir()
    write_eval_log(edited, str(folder / "edited" / "invalidated.eval"))
    logs = [described(path) for path in sorted(folder.rglob("*.*")) if path.suffix in (".eval", ".json")]
    try:
        # Long samples in parts: older versions do not have that, and this one does not read it back as a whole.
        from inspect_ai.log._recorders.chunked import convert_eval_logs_to_chunked  # type: ignore[import-not-found]
    except ImportError:
        pass
    else:
        whole = folder / "edited" / "invalidated.eval"
        convert_eval_logs_to_chunked(str(whole), str(folder / "in_parts"))
        logs.append(described(whole) | {"path": str(folder / "in_parts" / whole.name)})
    print(json.dumps(logs))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
