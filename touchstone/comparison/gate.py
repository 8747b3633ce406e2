"""The gate: a run against the snapshot that is pinned as its baseline, before anything is published.

It makes the tables `baseline_verdicts`, `regressions` and `regression_counts` and the report `comparison.md`, and
decides by the configuration whether a worse model or a regressed or lost case is ignored, warned about, or blocks
publishing. How evaluations are compared is in `compare`. `with_gates` answers gates of `touchstone compare`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import polars as pl

from touchstone.comparison.comparability import (
    Agreement,
    agreements_in,
    compare_models_of_run,
    compare_sides,
    exploratory_reasons,
)
from touchstone.comparison.compare import (
    ComparisonResult,
    changed_cases,
    compare_models,
    validation_differences,
    verdict_lines,
    verdict_row,
)
from touchstone.comparison.failure_modes import compare_failures, describe_changes
from touchstone.comparison.gates import GateData, answer_gates, gates_hold
from touchstone.comparison.inputs import ComparisonInput, open_input, with_files
from touchstone.comparison.pairs import ComparisonSettings, PairResult, sentence
from touchstone.comparison.regressions import KINDS, ScoreMethod
from touchstone.comparison.report import ComparisonReport, exploratory_line, format_report
from touchstone.comparison.sequential import earlier_verdicts, next_look
from touchstone.comparison.verdicts import Look
from touchstone.config import ComparisonConfig, EvaluationConfig
from touchstone.config.gates import GateSettings, parse_gate
from touchstone.errors import TouchstoneError, shown
from touchstone.inference.exact import exact_sum
from touchstone.inference.fallen import poisson_binomial_tail
from touchstone.metrics.keys import MODEL_TIER
from touchstone.storage.files import replacing
from touchstone.storage.snapshots import Snapshot, explain_unreadable, find_if_known
from touchstone.storage.store import REPORT, Store
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult, GateResult
from touchstone.text import counted, some_of
from touchstone.validation.validators_used import validators_used

_THIS_RUN = "this run"
_MOST_NAMED = 3
_COUNTS = [name for name, dtype in TABLES["regression_counts"].dtypes.items() if dtype == pl.Int64]


@dataclass
class Gate:
    """A run against its pinned baseline. With `accept`, nothing blocks publishing: failures only warn."""

    config: ComparisonConfig
    store: Store
    accept: bool = False
    _validators_used: dict[str, pl.DataFrame] = field(init=False, default_factory=dict)
    _compared: dict[tuple[ScoreMethod, float, str], pl.DataFrame] = field(init=False, default_factory=dict)

    @cached_property
    def baseline(self) -> Snapshot | None:
        """The snapshot that the configuration names; None if nothing has that name yet."""
        return find_if_known(self.store.root, self.config.baseline)

    @property
    def version(self) -> str | None:
        """The version of the baseline, on which the gate's tables depend besides what they read."""
        return self.baseline.id if self.baseline is not None else None

    @property
    def report(self) -> Path:
        """The report's file."""
        return self.store.root / REPORT

    def baseline_verdicts(
        self, scores: pl.LazyFrame, problems: pl.LazyFrame, looks: int, *settings: Any
    ) -> pl.LazyFrame:
        """Every model and tier compared with the pinned baseline, at the level of this look; empty without one."""
        schema = TABLES["baseline_verdicts"].dtypes
        if self.baseline is None:
            return pl.LazyFrame(schema=schema)
        baseline, statistics = self.baseline, _settings(settings)
        look = next_look(self.store, baseline, self.config.baseline, looks, statistics.alpha)
        run = ComparisonInput(_THIS_RUN, scores, problems)
        judged = compare_models(_frozen(baseline), run, replace(statistics, alpha=look.level))
        rows = [_row(model, tier, baseline, result) | vars(look) for (model, tier), result in judged.items()]
        return pl.LazyFrame(rows, schema=schema)

    def sequential_verdicts(self, verdicts: pl.LazyFrame, *settings: Any) -> pl.LazyFrame:
        """The verdicts of every run since the pinned baseline, each at the level of its look."""
        schema = TABLES["sequential_verdicts"].dtypes
        now = verdicts.filter(pl.col("look").is_not_null()).with_columns(snapshot=pl.lit(None, pl.String)).collect()
        if self.baseline is None or now.is_empty():
            return pl.LazyFrame(schema=schema)
        look, looks = now.select("look", "looks").row(0)
        earlier = earlier_verdicts(self.store, self.baseline, look, looks, _settings(settings))
        return pl.concat([earlier, now.select(schema.names())]).lazy().sort("model", "tier", "look")

    def comparability(
        self,
        scores: pl.LazyFrame,
        problems: pl.LazyFrame,
        baselines: pl.LazyFrame,
        outcomes: pl.LazyFrame,
        stated: pl.LazyFrame,
        sources: pl.LazyFrame,
        configured: pl.LazyFrame,
        require: Sequence[str],
    ) -> pl.LazyFrame:
        """Whether the run and its pinned baseline, and the models of the run, agree in what may differ."""
        run = ComparisonInput(
            _THIS_RUN,
            scores,
            with_files(self.store.scan_with_extras("problems") if self.store.part("problems") else problems, baselines),
            validators=self._validators(outcomes),
            settings=stated.collect(),
            files=sources.select("model", "sha256").collect(),
            configured=dict(configured.collect().iter_rows()),
        )
        against = compare_sides(_frozen(self.baseline), run, require) if self.baseline is not None else []
        kinds = {"baseline": against, "models": compare_models_of_run(run, require)}
        rows = [{"kind": kind, **vars(row)} for kind, found in kinds.items() for row in found]
        return pl.LazyFrame(rows, schema=TABLES["comparability"].dtypes)

    def failure_changes(
        self, scores: pl.LazyFrame, problems: pl.LazyFrame, failures: pl.LazyFrame, *settings: object
    ) -> pl.LazyFrame:
        """Every failure mode compared with the pinned baseline; empty without one."""
        if self.baseline is None:
            return pl.LazyFrame(schema=TABLES["failure_changes"].dtypes)
        run = ComparisonInput(_THIS_RUN, scores, problems, failures=failures.collect())
        statistics = ComparisonSettings(*settings)  # type: ignore[arg-type]
        return compare_failures(_frozen(self.baseline), run, statistics).lazy()

    def _validators(self, outcomes: pl.LazyFrame) -> pl.DataFrame:
        """The validators that decided the outcomes; looked up once per run."""
        version = self.store.fingerprint("outcomes")
        if version not in self._validators_used:
            self._validators_used = {version: validators_used(outcomes)}
        return self._validators_used[version]

    def regressions(
        self, scores: pl.LazyFrame, problems: pl.LazyFrame, threshold: float, score: ScoreMethod
    ) -> pl.LazyFrame:
        """Every case that differs from the pinned baseline: worse, better, new, removed or lost; empty without one."""
        if self.baseline is None:
            return pl.LazyFrame(schema=TABLES["regressions"].dtypes)
        cases = self._cases(self.baseline, scores, problems, score, threshold)
        return cases.lazy().filter(pl.col("kind") != "unchanged").select(TABLES["regressions"].dtypes.names())

    def regression_counts(
        self, scores: pl.LazyFrame, problems: pl.LazyFrame, threshold: float, score: ScoreMethod
    ) -> pl.LazyFrame:
        """Regressed cases per model and tier, and how many to expect by chance; empty without a baseline."""
        if self.baseline is None:
            return pl.LazyFrame(schema=TABLES["regression_counts"].dtypes)
        return counts_by_model(self._cases(self.baseline, scores, problems, score, threshold)).lazy()

    def holds_against_baseline(
        self,
        scores: pl.LazyFrame,
        problems: pl.LazyFrame,
        verdicts: pl.LazyFrame,
        regressions: pl.LazyFrame,
        counts: pl.LazyFrame,
        outcomes: pl.LazyFrame,
        comparability: pl.LazyFrame,
        wanted: ComparisonConfig,
        *settings: Any,
    ) -> GateResult:
        """No model is shown to be worse than in the pinned baseline, nor cases; the configuration says what then."""
        unreadable = explain_unreadable(self.store.root)
        if self.baseline is None:
            self.report.unlink(missing_ok=True)
            return _with_remarks(self._nothing_pinned(), unreadable)
        judged = verdicts.sort("model", "tier").collect()
        statistics, remarks = _settings(settings), []
        for row in judged.select("look", "looks", "level").head(1).iter_rows():
            look = Look(*row)
            statistics, remarks = replace(statistics, alpha=look.level), [look.explain(self.config.baseline)]
        remarks += validation_differences(_frozen(self.baseline).validators, self._validators(outcomes), _THIS_RUN)
        remarks += self._without_rulings(self.baseline, scores, problems, outcomes, judged, statistics)
        agreements = agreements_in(comparability, "baseline")
        cases = self._cases(self.baseline, scores, problems, wanted.score, wanted.threshold)
        self._write_report(self.baseline, judged, cases, remarks, agreements)
        wanted = wanted.model_copy(update={"alpha": statistics.alpha})
        found = judge_changes(judged, regressions.collect(), counts.collect(), wanted)
        found = replace(found, error=found.error and not self.accept)
        reasons = exploratory_reasons(agreements)
        if reasons:
            label = f"{exploratory_line(reasons)}; {found.message}"
            found = replace(found, passed=False, error=found.error or not self.accept, message=label)
        message = "; ".join([found.message, *remarks])
        if found.error:
            message += f"; see {self.report}; if this is intended, run again with --accept and pin the new baseline"
        result = GateResult(
            found.passed,
            message,
            found.error,
            found.figures,
            report=self.report.read_text(),
            path=self.report,
            baseline=self.baseline.id,
            verdicts="; ".join(f"{row['model']} {row['tier']}: {row['verdict']}" for row in judged.to_dicts()),
        )
        return _with_remarks(result, unreadable)

    def gate_results(self, *given: Any) -> pl.LazyFrame:
        """The answer of every gate of the configuration; empty if there are none."""
        frames = dict(zip(TABLES["gate_results"].reads, given, strict=False))
        gates, intervals, power = given[len(frames) :]
        baseline = _frozen(self.baseline).attempt_scores if self.baseline is not None and gates.expressions else None
        reasons = exploratory_reasons(agreements_in(frames["comparability"], "baseline"))
        return answer_gates(gates, GateData(frames.__getitem__, intervals, power, baseline, reasons))

    def gates_hold(self, results: pl.LazyFrame, gates: GateSettings) -> CheckResult:
        """Every gate holds; one that is inconclusive passes, warns or fails, as the configuration says."""
        return gates_hold(results, gates, self.accept)

    def _cases(
        self, baseline: Snapshot, scores: pl.LazyFrame, problems: pl.LazyFrame, score: ScoreMethod, threshold: float
    ) -> pl.DataFrame:
        """Every case of the run or of the baseline, with what became of it; computed once per run."""
        key = (score, threshold, self.store.fingerprint("attempt_scores"))
        if key not in self._compared:
            run = ComparisonInput(_THIS_RUN, scores, problems)
            self._compared = {key: changed_cases(_frozen(baseline), run, score, threshold)}
        return self._compared[key]

    def _without_rulings(
        self,
        baseline: Snapshot,
        scores: pl.LazyFrame,
        problems: pl.LazyFrame,
        outcomes: pl.LazyFrame,
        judged: pl.DataFrame,
        settings: ComparisonSettings,
    ) -> list[str]:
        """A line if rulings of people count in this run: whether a verdict would be another without them."""
        key, rate = list(TABLES["attempts"].key), pl.col("measured").cast(pl.Float64).alias("pass_rate")
        ruled = outcomes.filter(pl.col("ruling").is_not_null()).select(*key, rate).collect().lazy()
        count = ruled.select(pl.len()).collect().item()
        if not count:
            return []
        measured = pl.concat([scores.join(ruled, on=key, how="anti").select(*key, "pass_rate"), ruled])
        after = ComparisonInput(_THIS_RUN, measured, problems)
        then = compare_models(_frozen(baseline), after, settings)
        other = [
            f"{model} {tier} would be {then[model, tier].verdict} and not {verdict}"
            for model, tier, verdict in judged.select("model", "tier", "verdict").iter_rows()
            if (model, tier) in then and verdict != then[model, tier].verdict
        ]
        rulings = counted(count, "outcome is as a person ruled", "outcomes are as people ruled")
        return [f"{rulings}; without rulings {', '.join(other) or 'every verdict would be the same'}"]

    def _write_report(
        self,
        baseline: Snapshot,
        verdicts: pl.DataFrame,
        cases: pl.DataFrame,
        remarks: list[str],
        agreements: list[Agreement],
    ) -> None:
        """Write the comparison as Markdown for a pull request."""
        lines = verdict_lines(verdicts.select("verdict", "model", "tier", "sentence").iter_rows())
        label, wanted = f"{self.config.baseline} ({baseline.id})", self.config
        modes = describe_changes(self.store.scan("failure_changes").collect(), self.config.alpha)
        comparison = ComparisonReport(
            label,
            _THIS_RUN,
            wanted.threshold,
            wanted.score,
            cases,
            lines,
            [*remarks, *modes],
            verdicts.to_dicts(),
            comparability=agreements,
        )
        with replacing(self.report) as scratch:
            scratch.write_text(format_report(comparison, "markdown"))

    def _nothing_pinned(self) -> GateResult:
        name = self.config.baseline
        command = f"touchstone snapshots pin latest {name} --data {shown(str(self.store.root))}"
        return GateResult(True, f"no snapshot is pinned as '{name}', so nothing was compared; to pin one: {command}")


def counts_by_model(cases: pl.DataFrame) -> pl.DataFrame:
    """The cases of each kind, per model and tier, and how many regressions to expect by chance."""
    names = {kind: {"regression": "regressions", "improvement": "improvements"}.get(kind, kind) for kind in KINDS}
    counts = (
        cases.group_by("model", "tier")
        .agg(
            *((pl.col("kind") == kind).sum().cast(pl.Int64).alias(name) for kind, name in names.items()),
            expected_by_chance=exact_sum(pl.col("chance_of_regression")),
            compared_by_pass_rate=pl.col("fallback").sum().cast(pl.Int64),
        )
        .sort("model", "tier")
    )
    regressed = dict(zip(counts.select(MODEL_TIER).iter_rows(), counts["regressions"], strict=True))
    distinct = [*MODEL_TIER, "chance_of_regression"]
    chances = cases.drop_nulls("chance_of_regression").group_by(distinct).len().sort(distinct)
    tails = [
        (*key, poisson_binomial_tail(rows["chance_of_regression"].to_numpy(), rows["len"].to_numpy(), regressed[key]))
        for key, rows in chances.partition_by(MODEL_TIER, as_dict=True).items()
    ]
    schema = {**dict.fromkeys(MODEL_TIER, pl.String), "p_regressions": pl.Float64}
    return counts.join(pl.DataFrame(tails, schema, orient="row"), on=MODEL_TIER, how="left", maintain_order="left")


def judge_changes(
    verdicts: pl.DataFrame, cases: pl.DataFrame, counted_cases: pl.DataFrame, wanted: ComparisonConfig
) -> CheckResult:
    """The verdicts and the changed cases judged by the configuration: all well, a warning or an error.

    A case that was judged in the baseline and has no decided attempt now cannot be shown to hold, so it counts like a
    regression.
    """
    worse = verdicts.filter(pl.col("verdict") == "worse").sort("model", "tier")
    counts: dict[str, int | float] = {
        "worse": worse.height,
        "better": verdicts.filter(pl.col("verdict") == "better").height,
        **{name: int(counted_cases[name].sum()) for name in _COUNTS},
        "expected_by_chance": float(counted_cases["expected_by_chance"].sum()),
    }
    beyond_chance = _beyond_chance(counted_cases, wanted.alpha)
    regressed = counts["regressions"] > 0 if wanted.on_regression == "fail" else beyond_chance
    answers = {(wanted.on_worse, worse.height > 0), (wanted.on_regression, regressed or counts["lost"] > 0)}
    fails, warns = ((answer, True) in answers for answer in ("fail", "warn"))
    named = [f"{model} {tier}: {words}" for model, tier, words in worse.select("model", "tier", "sentence").iter_rows()]
    more_worse = counted(len(named) - _MOST_NAMED, "more model and tier is worse", "more models and tiers are worse")
    more = [more_worse] if len(named) > _MOST_NAMED else []
    undecided = verdicts.filter(pl.col("verdict") == "inconclusive").height
    none = "no model was shown to be worse" + (f"; undecided: {undecided:,}" if undecided else "")
    parts = [*named[:_MOST_NAMED], *more] or [none]
    parts += [_describe_changes(counts, beyond_chance), *_describe_lost(cases.filter(pl.col("kind") == "lost"))]
    return CheckResult(not (fails or warns), "; ".join(parts), error=fails, figures=counts)


def _beyond_chance(counts: pl.DataFrame, alpha: float) -> bool:
    """Whether more cases of a model and tier regressed than chance explains, corrected for their number (Bonferroni).

    At half of alpha, as much as a false `worse` has: an unchanged run is silent with probability 1 - alpha.
    """
    return bool((counts["p_regressions"] * max(1, counts.height) <= alpha / 2).any())


def _describe_changes(counts: Mapping[str, int | float], beyond_chance: bool) -> str:
    regressed = counted(int(counts["regressions"]), "case regressed", "cases regressed")
    regressed += ", beyond chance" if beyond_chance else ""
    chance = f" ({counts['expected_by_chance']:,.1f} expected by chance alone)" if counts["regressions"] else ""
    removed = f", {counts['removed']:,} removed" if counts["removed"] else ""
    return f"{regressed}{chance}, {counts['improvements']:,} improved{removed}"


def _describe_lost(lost: pl.DataFrame) -> list[str]:
    if lost.is_empty():
        return []
    named = lost.sort("model", "tier", "oid").select(pl.format("{} of {} at {}", "oid", "model", "tier")).to_series()
    return [f"{counted(lost.height, 'case')} lost: no decided attempt now ({some_of(named.to_list(), _MOST_NAMED)})"]


def _with_remarks(found: GateResult, unreadable: list[str]) -> GateResult:
    """A snapshot that cannot be read is at least a warning: it may be the baseline."""
    return replace(found, message="; ".join([found.message, *unreadable]), passed=found.passed and not unreadable)


def _settings(settings: Sequence[Any]) -> ComparisonSettings:
    return replace(ComparisonSettings(*settings), same_model=True)


def _frozen(baseline: Snapshot) -> ComparisonInput:
    return open_input(str(baseline.folder))


def _row(model: str, tier: str, baseline: Snapshot, result: PairResult) -> dict[str, object]:
    words = sentence(result, "the baseline", _THIS_RUN)
    return {"baseline": baseline.id, "sentence": words, **verdict_row(model, tier, result)}


# The gates of `touchstone compare`: tables that a run would have are made from the scores of the attempts


def with_gates(
    comparison: ComparisonResult, gates: GateSettings, settings: ComparisonSettings, config: EvaluationConfig | None
) -> tuple[ComparisonResult, CheckResult]:
    """The comparison with the answers of the gates in its report, and whether they hold."""
    config = config or EvaluationConfig(fixes_dir=Path(), output_dir=Path())
    ks = {1, *(int(k) for each in gates.expressions if (k := parse_gate(each).where.get("k")))}
    intervals = config.intervals.model_copy(update={"confidence": settings.confidence, "seed": settings.seed})
    config = config.model_copy(update={"k_values": sorted(ks), "intervals": intervals})
    before, after = comparison.sides
    scores = _filled(after.attempt_scores, "attempt_scores")
    verdicts = [row | {"baseline": before.label, "sentence": ""} for row in comparison.report.models]
    made = {
        "attempt_scores": scores,
        "problems": _filled(
            scores.select(pl.col("oid").unique()) if after.problems is None else after.problems, "problems"
        ),
        "outcomes": _filled(scores.with_columns(passed=pl.col("pass_rate") == 1), "outcomes"),
        "sources": pl.LazyFrame(schema=TABLES["sources"].dtypes),
        "baseline_verdicts": pl.LazyFrame(verdicts, schema=TABLES["baseline_verdicts"].dtypes),
        "regression_counts": counts_by_model(comparison.report.cases).lazy(),
    }

    def table(name: str) -> pl.LazyFrame:
        if name not in made:
            function = TABLES[name].function
            if function is None:
                raise TouchstoneError(f"a comparison has no table '{name}' for its gates; use touchstone run --gate")
            values = [attrgetter(key)(config) for key in TABLES[name].settings]
            made[name] = function(*map(table, TABLES[name].reads), *values).collect().lazy()
        return made[name]

    reasons = comparison.report.exploratory
    data = GateData(table, intervals, settings.power, before.attempt_scores, reasons)
    answers = answer_gates(gates, data).collect()
    report = replace(comparison.report, gates=answers.to_dicts())
    return replace(comparison, report=report), gates_hold(answers.lazy(), gates)


def _filled(frame: pl.LazyFrame, table: str) -> pl.LazyFrame:
    """The declared columns of a table, null where the frame lacks them."""
    present = frame.collect_schema()
    return frame.select(
        pl.col(name) if name in present else pl.lit(None, dtype).alias(name)
        for name, dtype in TABLES[table].dtypes.items()
    )
