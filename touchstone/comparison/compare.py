"""Compare two evaluations: which cases changed, and whether a model got better or worse.

Used by `touchstone compare` and by the gate. The inputs are opened in `inputs`, cases compared in `regressions`, the
statistics computed in `pairs`, and the output formats written in `report`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from touchstone.comparison.comparability import compare_sides
from touchstone.comparison.failure_modes import compare_failures, describe_changes
from touchstone.comparison.inputs import ComparisonInput, open_input
from touchstone.comparison.pairs import ComparisonSettings, PairResult, compare_pairs, sentence
from touchstone.comparison.registered_plan import compare_with_plan, plan_sentence
from touchstone.comparison.regressions import ScoreMethod, compare_cases
from touchstone.comparison.report import ComparisonReport, exploratory_line
from touchstone.comparison.verdicts import Ends
from touchstone.config import IntervalSettings
from touchstone.errors import TouchstoneError
from touchstone.ingest.quarantine import explain_refusals
from touchstone.locations import address, downloaded
from touchstone.metrics.keys import MODEL_TIER, PROBLEM_KEY, ModelTier, counting_problems
from touchstone.metrics.pass_at_k import decided_counts, outcome_histogram, summarise
from touchstone.storage.output_folders import find_snapshot, is_of_snapshot_list, results_folder
from touchstone.storage.snapshots import explain_unreadable
from touchstone.tables import TABLES
from touchstone.text import counted, some_of, without_dashes
from touchstone.validation.validators_used import SCHEMA
from touchstone.vocabulary import REQUIRED_DIMENSIONS, VERDICTS

_NOT_JUDGED = "not judged: no attempt is decided on at least one side, so there is no verdict"

if TYPE_CHECKING:
    from touchstone.config import EvaluationConfig, RegisteredPlan


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """The report, the verdict per model and tier that both inputs have, notes for the user, and the two sides."""

    report: ComparisonReport
    verdicts: dict[ModelTier, str]
    notes: list[str]
    sides: tuple[ComparisonInput, ComparisonInput]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.report.counts.items() if count)
        label = [exploratory_line(self.report.exploratory)] if self.report.exploratory else []
        return "\n".join([*label, *self.report.verdict_lines, f"cases: {counts}"])


@dataclass(frozen=True)
class CompareOptions:
    """Which models and tiers to compare and by which score.

    `data` is the output folder in which snapshots are looked up by name. `files` are settings of a configuration for
    inputs that are files. `require` lists the dimensions in which both must agree.
    """

    threshold: float = 0.05
    score: ScoreMethod = "auto"
    models: Sequence[str] = ()
    tiers: Sequence[str] = ()
    data: Path | None = None
    files: Mapping[str, Any] = field(default_factory=dict)
    require: Sequence[str] = REQUIRED_DIMENSIONS
    plan: "RegisteredPlan | None" = None


def configured_options(config: "EvaluationConfig") -> CompareOptions:
    """The options that a configuration sets."""
    from touchstone.config import first_problems_csv
    from touchstone.ingest.input_paths import fetch_problems_csv

    fetch_problems_csv(config)
    problems_csv = first_problems_csv(config)
    files = {name: getattr(config, name) for name in ("score", "scoring", "problem_key", "cluster_columns", "columns")}
    return CompareOptions(
        threshold=config.comparison.threshold,
        score=config.comparison.score,
        data=config.output_dir,
        files=files | ({} if problems_csv is None else {"problems_csv": problems_csv}),
        require=tuple(config.comparison.require),
        plan=config.comparison.plan,
    )


def compare(baseline: str, current: str, options: CompareOptions, settings: ComparisonSettings) -> ComparisonResult:
    """Compare two evaluations, each given as a path or as the name of a snapshot in `options.data`."""
    before, after = (_open(name, options) for name in (baseline, current))
    single = _single_models(before, after)
    if single is not None:
        before, after = (renamed(each, " against ".join(single)) for each in (before, after))
    cases = changed_cases(before, after, options.score, options.threshold)
    if cases.is_empty():
        raise TouchstoneError("nothing to compare: neither input has the requested models and tiers")
    results = compare_models(before, after, replace(settings, same_model=single is None))
    sentences = ((result.verdict, *key, sentence(result, "baseline", "current")) for key, result in results.items())
    remarks = validation_differences(before.validators, after.validators)
    unjudged = [key for key in _in_both(before, after) if key not in results]
    lines = verdict_lines([*sentences, *(("inconclusive", *key, _NOT_JUDGED) for key in unjudged)])
    if options.plan is not None:
        compared = single or [model for model, _ in results]
        items = compare_with_plan(options.plan, settings, len(results), *_shared(before, after), compared)
        remarks.append(plan_sentence(items))
    remarks += describe_changes(compare_failures(before, after, settings), settings.alpha)
    models = [verdict_row(*key, result) for key, result in results.items()]
    report = ComparisonReport(
        before.label,
        after.label,
        options.threshold,
        options.score,
        cases,
        lines,
        remarks,
        models,
        settings.confidence,
        compare_sides(before, after, options.require),
    )
    notes = [*_unread_snapshots(baseline, current, options), *explain_refusals([*before.quarantine, *after.quarantine])]
    if single is not None:
        notes.append(f"different models: {single[0]} (current) is compared with {single[1]} (baseline)")
    notes += _alike_problems(cases)
    notes += dict.fromkeys((*before.notes, *after.notes))
    if not results and not unjudged:
        notes.append("the inputs have no model and tier in common; the model of a file is its name without _fixes.csv")
    return ComparisonResult(report, {key: result.verdict for key, result in results.items()}, notes, (before, after))


def _alike_problems(cases: pl.DataFrame) -> list[str]:
    """A hint if problems of the two sides may be the same: versions of a tool differ in how they write a task."""
    removed, new = (set(cases.filter(pl.col("kind") == kind)["oid"]) for kind in ("removed", "new"))
    known = {without_dashes(oid): oid for oid in sorted(removed - new)}
    pairs = [(known[without_dashes(oid)], oid) for oid in sorted(new - removed) if without_dashes(oid) in known]
    if not pairs:
        return []
    (old, current), count = pairs[0], counted(len(pairs), "such pair")
    why = "differ only in dashes and underscores, so they are not compared"
    return [f"{old!r} (baseline) and {current!r} (current) {why}; {count}"]


def _in_both(before: ComparisonInput, after: ComparisonInput) -> list[ModelTier]:
    """The models and tiers of both inputs, decided or not."""
    old, new = (set(each.attempt_scores.select(MODEL_TIER).unique().collect().iter_rows()) for each in (before, after))
    return sorted(old & new)


def _shared(before: ComparisonInput, after: ComparisonInput) -> tuple[set[str], list[int]]:
    """The problems that both sides decided, and the attempts at each."""
    old, new = (decided_counts(each.attempt_scores).collect() for each in (before, after))
    both = old.join(new, on=PROBLEM_KEY)
    return set(both["oid"]), [*both["n"], *both["n_right"]]


def changed_cases(
    before: ComparisonInput, after: ComparisonInput, score: ScoreMethod = "auto", threshold: float = 0.05
) -> pl.DataFrame:
    """Every case of either input with the kind of change; see `regressions`."""
    listed = after.problems if after.problems is None else counting_problems(after.problems)
    return compare_cases(before.attempt_scores, after.attempt_scores, score, threshold, listed)


def compare_models(
    before: ComparisonInput, after: ComparisonInput, settings: ComparisonSettings
) -> dict[ModelTier, PairResult]:
    """Test current against baseline for every model and tier that both have.

    p-values are adjusted for the number of models and tiers, so that many raise no more false alarms than one.
    """
    old, new = before.attempt_scores, after.attempt_scores
    problems = after.problems if after.problems is not None else before.problems
    pairs = _paired_counts(old, new, problems)
    results = dict(zip(pairs, compare_pairs(list(pairs.values()), settings), strict=True))
    same, rates = _same_outcomes(old, new), _rate_intervals(pairs, problems, settings)
    holds = _holds_if_undecided(pairs, old, new, results, settings)
    return {
        key: replace(result, same_attempts=key in same, rate_intervals=rates[key], holds_if_undecided=holds.get(key))
        for key, result in results.items()
    }


def _holds_if_undecided(
    pairs: Mapping[ModelTier, pl.DataFrame],
    old: pl.LazyFrame,
    new: pl.LazyFrame,
    results: Mapping[ModelTier, PairResult],
    settings: ComparisonSettings,
) -> dict[ModelTier, bool]:
    """Whether each verdict holds if undecided attempts passed on one side and failed on the other, both ways.

    Of the models and tiers that have such attempts.
    """
    sides = [_undecided(each, side) for each, side in ((old, "a"), (new, "b"))]
    if not any(each.height for each in sides):
        return {}
    frames = {}
    for (model, tier), counts in pairs.items():
        own = [each.filter(pl.col("model") == model, pl.col("tier") == tier).drop(MODEL_TIER) for each in sides]
        both = own[0].join(own[1], on="oid", how="full", coalesce=True)
        frames[model, tier] = counts.join(both, on="oid", how="full", coalesce=True).with_columns(
            pl.col("n_a", "c_a", "n_b", "c_b", "u_a", "u_b").fill_null(0)
        )
    holds = {key: True for key, frame in frames.items() if any(frame.select(pl.col("u_a", "u_b").sum()).row(0))}
    for passing, failing in (("a", "b"), ("b", "a")):
        read = [
            frame.with_columns(
                pl.col(f"n_{passing}") + pl.col(f"u_{passing}"),
                pl.col(f"c_{passing}") + pl.col(f"u_{passing}"),
                pl.col(f"n_{failing}") + pl.col(f"u_{failing}"),
            )
            for frame in frames.values()
        ]
        for key, then in zip(frames, compare_pairs(read, settings), strict=True):
            if key in holds:
                holds[key] = holds[key] and results[key].verdict == then.verdict
    return holds


def _undecided(scores: pl.LazyFrame, side: str) -> pl.DataFrame:
    """Undecided attempts per model, tier and problem."""
    attempts = scores.filter(pl.col("pass_rate").is_null()).group_by(PROBLEM_KEY)
    return attempts.agg(pl.len().cast(pl.Int64).alias(f"u_{side}")).collect()


def verdict_row(model: str, tier: str, result: PairResult) -> dict[str, object]:
    """A result with the columns of the table `baseline_verdicts`."""
    (low_a, high_a), (low_b, high_b) = result.rate_intervals
    renamed = {
        "only_baseline": result.problems_only_a,
        "only_current": result.problems_only_b,
        "rate_baseline": result.rate_a,
        "rate_baseline_ci_low": low_a,
        "rate_baseline_ci_high": high_a,
        "rate_current": result.rate_b,
        "rate_current_ci_low": low_b,
        "rate_current_ci_high": high_b,
        "ci_method": result.method,
        "ci_units": result.units,
    }
    same = {name: value for name, value in vars(result).items() if name in TABLES["baseline_verdicts"].dtypes}
    return {"model": model, "tier": tier, **renamed, **same}


def _rate_intervals(
    pairs: Mapping[ModelTier, pl.DataFrame], problems: pl.LazyFrame | None, settings: ComparisonSettings
) -> dict[ModelTier, tuple[Ends, Ends]]:
    """The confidence intervals of pass@1 of both sides on the problems that both decided."""
    shared = [
        rows.filter(pl.col("n_a") > 0, pl.col("n_b") > 0).with_columns(model=pl.lit(model), tier=pl.lit(tier))
        for (model, tier), rows in pairs.items()
    ]
    if not shared:
        return {}
    counts, groups = pl.concat(shared), list(pairs)
    clusters = problems.select("oid", "cluster") if problems is not None else counts.lazy().select("oid", "cluster")
    intervals = IntervalSettings(confidence=settings.confidence, seed=settings.seed)

    def of(side: str) -> list[Ends]:
        own = counts.lazy().select(*PROBLEM_KEY, n=f"n_{side}", c=f"c_{side}")
        histogram = outcome_histogram(own, clusters.unique("oid")).collect()
        rows = summarise(histogram, groups, counts.height, [1], intervals)
        return [(low, high) for low, high in rows.select("ci_low", "ci_high").iter_rows()]

    return dict(zip(groups, zip(of("a"), of("b"), strict=True), strict=True))


def verdict_lines(verdicts: Iterable[tuple[str, str, str, str]]) -> list[str]:
    """Lines of text from (verdict, model, tier, sentence), worst first, with the models in front.

    >>> verdict_lines([("inconclusive", "a", "T0", "the same"), ("worse", "b", "T0", "worse"),
    ...                ("inconclusive", "c", "T0", "the same")])
    ['b: worse', 'a, c: the same']
    """
    ordered = sorted(verdicts, key=lambda row: (VERDICTS.index(row[0]), *row[1:]))
    has_tiers = len({tier for _, _, tier, _ in ordered}) > 1
    by_sentence: dict[str, list[str]] = {}
    for _, model, tier, words in ordered:
        by_sentence.setdefault(words, []).append(f"{model} {tier}" if has_tiers else model)
    return [f"{some_of(names, 10)}: {words}" for words, names in by_sentence.items()]


def _open(name: str, options: CompareOptions) -> ComparisonInput:
    """The requested models and tiers of an existing path, else of the snapshot of that name."""
    if _is_snapshot_name(name, options) and options.data is not None:
        snapshot = find_snapshot(options.data, name)
        label = name if name == snapshot.id else f"{name} ({snapshot.id})"
        return selected(replace(open_input(str(snapshot.folder)), label=label), options.models, options.tiers)
    if name.strip() and _is_missing(name):
        raise TouchstoneError(f"{name}: no such file or folder; to name a snapshot, add --data DIR")
    return selected(open_input(name, **options.files), options.models, options.tiers)


def selected(side: ComparisonInput, models: Sequence[str], tiers: Sequence[str]) -> ComparisonInput:
    """The attempts of these models and tiers, and the validators that decided them; without names, of all."""
    wanted = [pl.col(key).is_in(names) for key, names in (("model", models), ("tier", tiers)) if names]
    if not wanted:
        return side
    validators = side.validators.filter(*wanted) if side.validators is not None else None
    return replace(side, attempt_scores=side.attempt_scores.filter(*wanted), validators=validators)


def renamed(side: ComparisonInput, model: str) -> ComparisonInput:
    """The side with its models under another name."""
    only, name = _models(side), pl.lit(model).alias("model")
    validators, settings, files, failures = (
        rows.filter(pl.col("model").is_in(only)).with_columns(name) if rows is not None else None
        for rows in (side.validators, side.settings, side.files, side.failures)
    )
    return replace(
        side,
        attempt_scores=side.attempt_scores.with_columns(name),
        validators=validators,
        settings=settings,
        files=files,
        failures=failures,
    )


def _single_models(before: ComparisonInput, after: ComparisonInput) -> tuple[str, str] | None:
    """The current and the baseline model of two inputs that have one model each, if the two differ."""
    old, new = (_models(each) for each in (before, after))
    return (new[0], old[0]) if len(old) == len(new) == 1 and old != new else None


def _models(side: ComparisonInput) -> list[str]:
    return side.attempt_scores.select(pl.col("model").unique().sort()).collect()["model"].to_list()


def _is_snapshot_name(name: str, options: CompareOptions) -> bool:
    return options.data is not None and _is_missing(name)


def _is_missing(name: str) -> bool:
    return downloaded(name) is None and address(name) is None and not Path(name).exists()


def _unread_snapshots(baseline: str, current: str, options: CompareOptions) -> list[str]:
    """Notes on unreadable snapshots, which change what `latest` and `previous` refer to."""
    if options.data is None or not any(_is_snapshot_name(name, options) for name in (baseline, current)):
        return []
    return explain_unreadable(results_folder(options.data, is_of_snapshot_list))


def _paired_counts(
    old: pl.LazyFrame, new: pl.LazyFrame, problems: pl.LazyFrame | None
) -> dict[ModelTier, pl.DataFrame]:
    """Attempts n and passes c per problem, baseline as a and current as b, per model and tier that both have."""
    sides = [
        decided_counts(scores).rename({"n": f"n_{side}", "c": f"c_{side}"}) for side, scores in (("a", old), ("b", new))
    ]
    joined = sides[0].join(sides[1], on=PROBLEM_KEY, how="full", coalesce=True)
    clustered = (
        joined.join(problems.select("oid", "cluster"), on="oid", how="left")
        if problems is not None
        else joined.with_columns(cluster=pl.lit(None, pl.String))
    )
    both = clustered.sort(*PROBLEM_KEY).collect()
    found = {}
    for key, rows in both.group_by(MODEL_TIER, maintain_order=True):
        if rows["n_a"].count() and rows["n_b"].count():
            model, tier = (str(part) for part in key)
            found[model, tier] = rows.drop(MODEL_TIER)
    return dict(sorted(found.items()))


def _same_outcomes(old: pl.LazyFrame, new: pl.LazyFrame) -> set[ModelTier]:
    """The models and tiers with the same attempts in both inputs and the same outcome for each of them."""
    attempt = pl.struct("oid", "iteration_id", "pass_rate").hash()
    both = [each.group_by(MODEL_TIER).agg(attempts=pl.len(), outcomes=attempt.sum()) for each in (old, new)]
    same = both[0].join(both[1], on=[*MODEL_TIER, "attempts", "outcomes"], how="inner").select(MODEL_TIER).collect()
    return {(str(model), str(tier)) for model, tier in same.iter_rows()}


# Differences in validation: these can change a figure without any change in the model.

_MOST_NAMED = 3


def validation_differences(
    before: pl.DataFrame | None, after: pl.DataFrame | None, current: str = "current"
) -> list[str]:
    """One line per distinct difference, for models and tiers in both evaluations; none if validators are unknown.

    >>> sides = [pl.DataFrame({"model": "m", "tier": "T0", "validator": name, "validator_version": version,
    ...     "fidelity": fidelity, "sandbox": sandbox}) for name, version, fidelity, sandbox in
    ...     (("hcl", "1", "static", None), ("terraform", "1.9", "full", "bubblewrap"))]
    >>> validation_differences(*sides)
    ['validated differently: baseline by hcl 1 (static), current by terraform 1.9 (full, bubblewrap)']
    """
    if before is None or after is None:
        return []
    old, new = _by_group(before), _by_group(after)
    both = sorted(old.keys() & new.keys())
    found: dict[tuple[str, str], list[str]] = {}
    for group in both:
        if old[group] != new[group]:
            found.setdefault((_describe(old[group]), _describe(new[group])), []).append(" ".join(group))
    return [
        f"validated differently: baseline by {was}, {current} by {now}"
        + (f" ({some_of(names, _MOST_NAMED)})" if len(names) < len(both) else "")
        for (was, now), names in found.items()
    ]


def _by_group(rows: pl.DataFrame) -> dict[tuple[str, str], set[tuple[str | None, ...]]]:
    grouped: dict[tuple[str, str], set[tuple[str | None, ...]]] = {}
    for model, tier, *details in rows.select(list(SCHEMA)).iter_rows():
        grouped.setdefault((model, tier), set()).add(tuple(details))
    return grouped


def _describe(validators: set[tuple[str | None, ...]]) -> str:
    return " and ".join(sorted(_describe_validator(*details) for details in validators))


def _describe_validator(validator: str | None, version: str | None, fidelity: str | None, sandbox: str | None) -> str:
    if validator == "recorded":
        return "recorded outcomes"
    name = " ".join(part for part in (validator, version) if part)
    details = ", ".join(part for part in (fidelity, sandbox) if part)
    return f"{name} ({details})" if details else name
