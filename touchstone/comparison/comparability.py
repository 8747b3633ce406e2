"""Whether two sides can be compared: in which dimensions they agree, differ, or nothing is known.

A dimension is what may differ besides the model: the problems, who judged, how answers were generated. What is known
about a side are settings, stated by its files (`source_settings`) or by the configuration of its run. Two sides differ
in a dimension if they state different values of a setting. What only one of them states, or neither, is unknown, which
is not a difference. Files with the same content state the same, whatever it is.

Problems are the same if every problem that both sides attempted was asked the same way, in the same version of the
task; problems that only one side has are counted, and are left out of the comparison.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from touchstone.comparison.inputs import STATED, ComparisonInput
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, some_of
from touchstone.vocabulary import AGREEMENTS, ASKED, ASKED_DIFFERENTLY, DIMENSIONS, JUDGED_BY

_NOT_STATED = "not stated"
_UNSET = ("default", "none", "null", "false")
_MOST_NAMED = 3
# Settings whose values need no name.
_OUTCOMES, _JUDGE, _ATTEMPTS = _UNNAMED = ("outcomes", "judged by", "attempts")
# Settings of a run's configuration by dimension. Those of validation matter only for outcomes that were decided there.
_CONFIGURED = {
    "scorer": ("scoring.composite.", "scoring.code.", "validation.success"),
    "validator": ("validation.test_edits", "validation.exclude_flaky"),
    "limits": ("validation.limits.",),
}
# These can show a difference, but do not make two sides the same: more decides than what they say.
_WEIGHTS = "scoring."
_WEAK = (_OUTCOMES, _WEIGHTS)
_PATCH_RELEASE = re.compile(r"(\d+\.\d+)\.\d+\S*")

# Dimension, suite (empty for all), setting; and the values that a side has for it, of several files maybe several.
Key = tuple[str, str, str]
Stated = dict[Key, frozenset[str]]


@dataclass(frozen=True)
class Agreement:
    """Whether two sides agree in a dimension, with what is known about each."""

    dimension: str
    agreement: str
    value_a: str
    value_b: str
    required: bool


def exploratory_reasons(rows: Iterable[Agreement]) -> list[str]:
    """Why a comparison is only exploratory: the required dimensions that differ, with both values.

    >>> exploratory_reasons([Agreement("scorer", "different", "exact", "fuzzy", True)])
    ['scorer: exact / fuzzy']
    """
    return [
        f"{row.dimension}: {row.value_a} / {row.value_b}"
        for row in rows
        if row.required and row.agreement == "different"
    ]


def compare_sides(before: ComparisonInput, after: ComparisonInput, require: Collection[str]) -> list[Agreement]:
    """A row per dimension on the models that both sides have; none if they have none in common."""
    attempted = [_attempted(each) for each in (before, after)]
    models = sorted(set(attempted[0]["model"]) & set(attempted[1]["model"]))
    if not models:
        return []
    old, new = (_stated(each, rows) for each, rows in zip((before, after), attempted, strict=True))
    same_files = {model for model in models if _files(before, model) == _files(after, model) is not None}
    rows = []
    for dimension in DIMENSIONS:
        found = [(model, _compared(old[model], new[model], dimension, model in same_files)) for model in models]
        if dimension == "problems":
            versions = [(model, _compared(old[model], new[model], "task_version", same_files=True)) for model in models]
            differing = [each for each in (*found, *versions) if each[1][0] == "different"]
            found = differing or [("", _problems(before, after, attempted, models))]
        elif dimension == "validator" and (changed := _changed(before, after, attempted, models, JUDGED_BY)):
            found = [
                ("", ("different", "tests of its problems", f"other tests or files of {counted(changed, 'problem')}"))
            ]
        rows.append(_worst(dimension, found, dimension in require))
    return rows


def compare_models_of_run(run: ComparisonInput, require: Collection[str]) -> list[Agreement]:
    """A row per dimension on the models of one run; none for a single model."""
    stated = _stated(run, _attempted(run))
    if len(stated) < 2:
        return []
    rows = []
    for dimension in DIMENSIONS:
        status, keys = _agreement(stated, dimension)
        value_a, value_b = _groups(stated, keys) if keys else (_shared_text(stated, dimension, status), "")
        if dimension == "problems":
            status, value_a, value_b = _problems_of_models(run, stated, value_a, value_b, bool(keys))
        rows.append(Agreement(dimension, status, value_a, value_b or value_a, dimension in require))
    return rows


def agreements_in(comparability: pl.LazyFrame, kind: str) -> list[Agreement]:
    """The rows of one kind in the table `comparability`."""
    rows = comparability.filter(pl.col("kind") == kind).drop("kind").collect().to_dicts()
    return [Agreement(**row) for row in rows]


def models_comparable(comparability: pl.LazyFrame) -> CheckResult:
    """The models of the run agree in all that is required."""
    rows = agreements_in(comparability, "models")
    reasons = exploratory_reasons(rows)
    if reasons:
        return CheckResult(False, f"comparing models of this run is exploratory: {'; '.join(reasons)}")
    return CheckResult(True, "no required dimension differs between models" if rows else "there is one model")


# Known settings of a side


def _attempted(evaluation: ComparisonInput) -> pl.DataFrame:
    """The attempts at each problem, per model and tier."""
    return evaluation.attempt_scores.group_by("model", "tier", "oid").agg(attempts=pl.len()).collect()


def _stated(evaluation: ComparisonInput, attempted: pl.DataFrame) -> dict[str, Stated]:
    """The settings of each model, by files and configuration, and how often it attempted a problem."""
    values: dict[str, dict[Key, set[str]]] = {
        model: defaultdict(set) for model in attempted["model"].unique().sort().to_list()
    }
    ranges = attempted.group_by("model").agg(low=pl.col("attempts").min(), high=pl.col("attempts").max())
    for model, low, high in ranges.iter_rows():
        many = f"{low}" if low == high else f"{low} to {high}"
        values[model]["attempts", "", _ATTEMPTS] = {f"{many} per problem"}
    validated, recorded = set(), set()
    for model, validator, version, fidelity, sandbox in _validators(evaluation):
        if model not in values:
            continue
        if validator == "recorded":
            recorded.add(model)
            values[model]["validator", "", _OUTCOMES].add("recorded in the files")
            continue
        validated.add(model)
        release = _PATCH_RELEASE.sub(r"\1", version or "")
        name = " ".join(part for part in (validator, release, f"({fidelity})" if fidelity else "") if part)
        values[model]["validator", "", _OUTCOMES].add("validated here")
        values[model]["validator", "", _JUDGE].add(name)
        if sandbox:
            values[model]["limits", "", "sandbox"].add(sandbox)
    rows = evaluation.settings.select(STATED).iter_rows() if evaluation.settings is not None else ()
    for model, suite, dimension, setting, value in rows:
        # The tool that wrote a file judged only the outcomes that are taken from it.
        if model in values and (setting != _JUDGE or model in recorded):
            values[model][dimension, suite or "", setting].add(value)
    for key, value in _configured(evaluation.configured or {}):
        for model in values:
            if not key[2].startswith("validation.") or model in validated:
                values[model][key] = {value}
    return {model: {key: frozenset(each) for key, each in stated.items()} for model, stated in values.items()}


def _validators(evaluation: ComparisonInput) -> Iterator[tuple[str, str | None, str | None, str | None, str | None]]:
    if evaluation.validators is not None:
        columns = ["model", "validator", "validator_version", "fidelity", "sandbox"]
        yield from evaluation.validators.select(columns).unique(maintain_order=True).iter_rows()


def _configured(settings: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
    for dimension, prefixes in _CONFIGURED.items():
        for key, value in settings.items():
            if key in prefixes or any(key.startswith(prefix) for prefix in prefixes if prefix.endswith(".")):
                plain = json.loads(value)
                yield (dimension, "", key), plain if isinstance(plain, str) else value


def _files(evaluation: ComparisonInput, model: str) -> frozenset[str] | None:
    """The digests of a model's files; None if they are not known."""
    if evaluation.files is None:
        return None
    return frozenset(evaluation.files.filter(pl.col("model") == model)["sha256"].drop_nulls()) or None


# Whether settings agree


def _agreement(sides: Mapping[str, Stated], dimension: str) -> tuple[str, list[Key]]:
    """Whether sides agree in a dimension, and the settings in which they differ.

    >>> hot, cold = ({("generation", "", "temperature"): frozenset([value])} for value in "10")
    >>> _agreement({"a": hot, "b": cold}, "generation"), _agreement({"a": hot, "b": {}}, "generation")
    (('different', [('generation', '', 'temperature')]), ('unknown', []))
    """
    suites = {name: {suite for _, suite, _ in stated} for name, stated in sides.items()}
    keys = sorted({key for stated in sides.values() for key in stated if key[0] == dimension})
    different, partly, known = [], False, False
    for key in keys:
        about = [name for name in sides if not key[1] or key[1] in suites[name]]
        if len(about) < 2:
            continue  # a suite that only one side has is not compared
        values = [sides[name][key] for name in about if key in sides[name]]
        if len(set(values)) > 1:
            different.append(key)
        if not key[2].startswith(_WEAK):
            partly |= len(values) < len(about)
            known |= len(values) > 1
    return ("different" if different else "same" if known and not partly else "unknown"), different


Compared = tuple[str, str, str]


def _compared(old: Stated, new: Stated, dimension: str, same_files: bool) -> Compared:
    """The status of a dimension for one model, and what each side states."""
    status, keys = _agreement({"a": old, "b": new}, dimension)
    if status == "unknown" and same_files:
        status = "same"
    value_a, value_b = (
        _text(side, keys or [key for key in side if key[0] == dimension], bool(keys)) for side in (old, new)
    )
    if status == "same" and value_a == _NOT_STATED:
        value_a = value_b = "not stated, the same files"
    return status, value_a, value_b


def _text(stated: Stated, keys: Sequence[Key], every: bool = False) -> str:
    """The values of settings in words; without `every`, those that are not set are left out."""
    keys = [key for key in keys if every or not key[2].startswith(_WEIGHTS)]
    several = len({suite for _, suite, _ in keys}) > 1
    words = []
    for key in sorted(keys):
        values = stated.get(key, frozenset([_NOT_STATED]))
        if every or not values <= set(_UNSET):
            suite = f"{key[1]}: " if several and key[1] else ""
            name = "" if key[2] in _UNNAMED else f"{key[2]} "
            words.append(suite + name + " and ".join(sorted(values)))
    if not words:
        return "defaults" if keys else _NOT_STATED
    return some_of(list(dict.fromkeys(words)), _MOST_NAMED)


def _shared_text(sides: Mapping[str, Stated], dimension: str, status: str) -> str:
    """The values that all models state, or some of them."""
    keys: Stated = reduce(lambda known, side: known | side, sides.values(), {})
    found = [key for key in keys if key[0] == dimension]
    partly = status == "unknown" and not all(key[2].startswith(_WEAK) for key in found)
    return _text(keys, found) + (" (not stated by all)" if partly else "")


def _groups(sides: Mapping[str, Stated], keys: Sequence[Key]) -> tuple[str, str]:
    """The first differing setting: the value that most models have, and the others, each with its models."""
    by_value: dict[frozenset[str], list[str]] = {}
    for name, stated in sides.items():
        if keys[0] in stated:
            by_value.setdefault(stated[keys[0]], []).append(name)
    ordered = sorted(by_value.items(), key=lambda each: (-len(each[1]), sorted(each[0])))
    words = [f"{_text({keys[0]: value}, keys[:1], True)} ({some_of(models, _MOST_NAMED)})" for value, models in ordered]
    return words[0], some_of(words[1:], _MOST_NAMED)


def _worst(dimension: str, found: Sequence[tuple[str, Compared]], required: bool) -> Agreement:
    """One row from those of all models: the worst status, with the values that most models of that status have."""
    status = min((compared[0] for _, compared in found), key=AGREEMENTS.index)
    worst = [compared for _, compared in found if compared[0] == status]
    chosen = max(worst, key=worst.count)
    models = [model for model, compared in found if compared == chosen and model]
    named = f" ({some_of(models, _MOST_NAMED)})" if 0 < len(models) < len(found) else ""
    return Agreement(dimension, status, chosen[1] + named, chosen[2] + named, required)


# Problems


def _problems(
    before: ComparisonInput, after: ComparisonInput, attempted: Sequence[pl.DataFrame], models: Sequence[str]
) -> Compared:
    old, new = (set(rows.filter(pl.col("model").is_in(models))["oid"]) for rows in attempted)
    shared, changed = len(old & new), _changed(before, after, attempted, models, ASKED)
    texts = []
    for own, other in ((old, new), (new, old)):
        alone = f", {len(own - other):,} only here" if own - other else ""
        texts.append(f"{counted(len(own), 'problem')}{alone}")
    if changed:
        texts[1] += f", {changed:,} asked differently"
    return "different" if changed or not shared else "same", texts[0], texts[1]


def _changed(
    before: ComparisonInput,
    after: ComparisonInput,
    attempted: Sequence[pl.DataFrame],
    models: Sequence[str],
    columns: Sequence[str],
) -> int:
    """The number of problems that both sides attempted and for which both state different values of these columns."""
    if before.problems is None or after.problems is None:
        return 0
    known = [frame.collect_schema().names() for frame in (before.problems, after.problems)]
    both = [name for name in columns if all(name in names for names in known)]
    if not both:
        return 0
    old, new = (
        frame.select("oid", *(pl.col(name).cast(pl.String) for name in both))
        for frame in (before.problems, after.problems)
    )
    pairs = old.join(new, on="oid")
    for rows in attempted:
        pairs = pairs.join(rows.lazy().filter(pl.col("model").is_in(models)).select("oid"), on="oid", how="semi")
    # A problem that files of one side ask differently cannot be compared with the other side.
    unmixed = pl.all().replace(ASKED_DIFFERENTLY, None)
    differs = pl.any_horizontal(pl.col(name) != pl.col(f"{name}_right") for name in both)
    return int(pairs.with_columns(unmixed).filter(differs).select(pl.len()).collect().item())


def _problems_of_models(
    run: ComparisonInput, stated: Mapping[str, Stated], value_a: str, value_b: str, differ: bool
) -> tuple[str, str, str]:
    """Models of one run have the problems of that run, unless their files ask them differently."""
    if differ:
        return "different", value_a, value_b
    status, keys = _agreement(stated, "task_version")
    if status == "different":
        return "different", *_groups(stated, keys)
    rows = run.problems
    total = rows.select(pl.len()).collect().item() if rows is not None else 0
    several = 0
    if rows is not None and ASKED[0] in rows.collect_schema().names():
        several = rows.filter(pl.col(ASKED[0]) == ASKED_DIFFERENTLY).select(pl.len()).collect().item()
    text = counted(total, "problem")
    return ("different", text, f"{several:,} asked differently by files") if several else ("same", text, "")
