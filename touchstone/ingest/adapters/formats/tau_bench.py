"""Adapters for tau-bench and tau2-bench: trials of conversations between an agent and a simulated user.

A trial passes if its reward is 1, within a millionth. tau-bench gives a trial that ends in an error the reward 0, so it
has failed; tau2-bench leaves trials that its infrastructure or the context window stopped out of its figures, so they
are undecided. They state no figure, except in `submission.json` above the folder of tau2-bench's files, in percent. By
their rule pass^k is the mean over tasks of C(c, k) / C(n, k), the chance
that all of k trials pass. In tau-bench every task counts as many trials as the file has, also those that are missing.

Trials are attempts in their order. tau-bench names model, agent and user only in the file's name, and the domain
nowhere: the tools that the tasks call tell it. Of a tau2-bench run with a file per simulation, `results.json` suffices.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from touchstone.config.formats import JsonFormat
from touchstone.config.json_paths import Found
from touchstone.errors import InputFileError
from touchstone.ingest.adapters.adapter import Adapter, Head, ReadOptions, not_evaluated
from touchstone.ingest.adapters.folders import object_beside
from touchstone.ingest.adapters.json_files import Number, inside, list_of, number_of, stated_settings
from touchstone.ingest.adapters.mapping import mapped_adapter
from touchstone.ingest.adapters.table import (
    AdapterTable,
    Cells,
    NamedModel,
    Record,
    RefusedRecordError,
    ReportedFigure,
    model_of_name,
)
from touchstone.ingest.adapters.tool_figures import count_by_problem, mean

_TOLERANCE = 1e-6
_RULE = "the chance that all of k trials pass, C(c, k) / C(n, k); pass@k: that one does"
_MAX_K = 100
# Left out of tau2-bench's own figures.
_NOT_EVALUATED = ("infrastructure_error", "context_window_exceeded")
_NAME = re.compile(
    r"(?P<agent_strategy>tool-calling|act|react|few-shot)-(?P<model>.+)-(?P<temperature>\d[\d.]*)_range_-?\d+-+\d+"
    r"_user-(?P<user_model>.+)-(?P<user_strategy>[a-z_]+?)(?:_(?P<run>\d{10}))?"
)
_DOMAINS = {"airline": re.compile("reservation|flight|certificate"), "retail": re.compile("order|product")}


def _solved(reward: object) -> bool | None:
    number = number_of(reward)
    if reward is not None and number is None:
        raise RefusedRecordError("bad_number", "the reward is not a number")
    return None if number is None else abs(number - 1) <= _TOLERANCE


def _figures(records: Iterable[Record], trials: Callable[[list[Cells]], int | None]) -> Iterator[ReportedFigure]:
    counted: dict[str, list[Cells]] = {}
    for record in records:
        if record.kind is None and record.cells.get("termination_reason") not in _NOT_EVALUATED:
            counted.setdefault(record.cells["llm_name"] or "", []).append(record.cells)
    for model, attempts in counted.items():
        rewards = [reward for cells in attempts if (reward := number_of(cells["reward"])) is not None]
        yield ReportedFigure(model, "average reward", None, mean(rewards))
        missing = len(attempts) - len(rewards)
        first = f"counts {missing:,} without a reward as failed; Touchstone leaves them out" if missing else None
        counts = count_by_problem((cells["oid"], cells["passed"] == "true") for cells in attempts)
        every = trials(attempts)
        for k in range(1, min(every or min(n for n, _ in counts), _MAX_K) + 1):
            rates = [math.comb(c, k) / math.comb(every or n, k) for n, c in counts]
            yield ReportedFigure(model, f"pass^{k}", None, mean(rates), note=_RULE if k > 1 else first)


def _stem(path: Path) -> str:
    return path.name.partition(".json")[0]


def _model(path: Path) -> NamedModel:
    name = _NAME.fullmatch(_stem(path))
    return model_of_name(path, name["model"] if name else _stem(path))


def _fill_tau(cells: Cells, found: Found) -> None:
    called = " ".join(str(inside(action).get("name")) for action in list_of(found.get("info.task.actions")))
    name = _NAME.fullmatch(found.names[0])
    cells["suite"] = next((domain for domain, tools in _DOMAINS.items() if tools.search(called)), None)
    cells["run_id"] = name and name["run"]


_TAU = mapped_adapter(
    JsonFormat(
        name="tau-bench",
        title="tau-bench trajectories",
        records="[]",
        problem="task_id",
        passed="reward",
        error="info.error",
        # Said by the tools that are called.
        suite="info.domain",
        columns={"reward": ("reward",), "trial": ("trial",), "user_cost": ("info.user_cost",)},
        requires=("[].traj", "[].info"),
    ),
    judge=lambda found: _solved(found.get("reward")),
    fill=_fill_tau,
    named=_model,
    figures=lambda records, _: _figures(records, lambda attempts: len({cells["trial"] for cells in attempts})),
)


def _read_tau(path: Path, options: ReadOptions) -> AdapterTable:
    table, name = _TAU.read(path, options), _NAME.fullmatch(_stem(path))
    domains = table.rows.select(pl.col("suite").drop_nulls().unique()).collect()["suite"].to_list()
    if len(domains) == 1:
        # The tasks of both domains have the same numbers.
        in_domain = {"suite": pl.lit(domains[0]), "oid": pl.format("{}/{}", pl.lit(domains[0]), "oid")}
        table = replace(table, rows=table.rows.with_columns(**in_domain))
    if name is None:
        return table
    model, stated = name["model"], name.groupdict() | {"temperature": Number(name["temperature"])}
    generation = stated_settings(model, "generation", stated, "temperature")
    agent = stated_settings(model, "agent", stated, "agent_strategy")
    user = stated_settings(model, "harness", stated, "user_model user_strategy")
    return replace(table, settings=(*generation, *agent, *user))


TAU = replace(_TAU, read=_read_tau)


def _judge_tau2(found: Found) -> bool | None:
    reward = found.get("reward_info.reward")
    is_evaluated = found.get("termination_reason") not in _NOT_EVALUATED
    return _solved(found.get("reward") if reward is None else reward) if is_evaluated else None


def _tau2(records: str) -> Adapter:
    return mapped_adapter(
        JsonFormat(
            name="tau2-bench",
            title="tau2-bench results",
            records=records,
            problem=("={$.info.environment_info.domain_name}/{task_id}", "task_id"),
            passed=("reward_info.reward", "reward"),
            model=("$.info.agent_info.llm", "$.info.audio_native_config.model", "$.info.agent_info.implementation"),
            suite="$.info.environment_info.domain_name",
            cost="agent_cost",
            duration="duration",
            columns={
                "reward": ("reward_info.reward", "reward"),
                "trial": ("trial",),
                "user_cost": ("user_cost",),
                "termination_reason": ("termination_reason",),
                "started_at": ("start_time",),
                "run_id": ("$.timestamp",),
                "sample_uuid": ("id",),
            },
            settings={
                "problems": ("$.info.environment_info.policy",),
                "generation": ("$.info.agent_info.llm_args.temperature", "$.info.agent_info.llm_args.reasoning_effort"),
                "agent": ("$.info.agent_info.implementation",),
                "limits": ("$.info.max_steps", "$.info.max_errors"),
                "harness": ("$.info.git_commit", "$.info.user_info.llm", "$.info.user_info.llm_args"),
            },
        ),
        judge=_judge_tau2,
        figures=lambda found, _: _figures(found, lambda _: None),
    )


_SIMULATIONS, _INDEX = _tau2("simulations[]"), _tau2("simulation_index[]")


def _read_tau2(path: Path, options: ReadOptions) -> AdapterTable:
    try:
        table = _SIMULATIONS.read(path, options)
    except InputFileError:
        table = _INDEX.read(path, options)
    files, submission = object_beside(path.absolute().parent, "submission.json")
    if not files:
        return table
    domain = table.rows.select("suite").first().collect().item()
    results = inside(submission, "results", str(domain))
    percents = {name.replace("_", "^"): number_of(value) for name, value in results.items()}
    shares = {name: percent / 100 for name, percent in percents.items() if percent is not None}
    figures = tuple(replace(each, reported=shares.get(each.name)) for each in table.figures)
    return replace(table, figures=figures, files=(path, *files))


def _recognizes_tau2(head: Head) -> bool:
    # Many tasks may stand before the simulations; some publish their simulations without the tasks.
    has_info = {("info", "agent_info"), ("info", "environment_info")} <= head.key_paths
    return has_info and (head.has_keys("tasks") or head.has_keys("simulations"))


_MARKS = "info.agent_info, info.environment_info, tasks | simulations"
TAU2 = replace(_SIMULATIONS, recognizes=_recognizes_tau2, read=_read_tau2, marks=_MARKS)
PARTS = not_evaluated(
    "tau2-bench-parts",
    "a simulation or the figures of tau2-bench",
    lambda head: head.has_keys("id", "task_id", "termination_reason") or head.has_keys("model_name", "methodology"),
    "figures or a single simulation of tau2-bench; the results of the run have its attempts",
    "ignored",
)
