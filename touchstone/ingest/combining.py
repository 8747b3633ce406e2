"""The attempts of one model from several files: what is in two of them counts once, and further runs add attempts.

These cases are safe to combine. If files of two formats have the same attempt, such as predictions and the report on
them, and do not contradict each other, it counts once. So does the same fix in two files that name no run, and a sample
that a tool copied from an earlier log, which has the same `sample_uuid`. And attempts with the same number in two files
of one format are different attempts if the files are different runs. Files of several agents are tiers, and so are
files about the same problems that state another temperature, solver or other way of running the model. Anything else is
refused: counting an attempt twice would be a wrong figure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from touchstone.ingest.adapters import AdapterTable
from touchstone.ingest.attempts import ATTEMPT_KEY, IngestedAttempts
from touchstone.ingest.sources import NATIVE, PLAIN_TABLES, Source
from touchstone.text import counted
from touchstone.vocabulary import DEFAULT_TIER, MAX_ID_LENGTH

UUID, _RUN, _AGENT = "sample_uuid", "run_id", "agent"
_OPTION = "temperature"
_PLACE, _FORMAT = "__place", "__format"
# What tells a run from one of another system or task; another seed or version of the same system makes a further run.
_CONDITIONS = ("agent", "generation", "problems", "task_version")
_NO_CONDITION = re.compile(r"seed|(?<!task_)version")
# What decides whether attempts of two files are the same.
DECIDING_COLUMNS = (*ATTEMPT_KEY, "passed", "fix_sha", _RUN, UUID, _AGENT, _OPTION)


@dataclass(frozen=True)
class Combined:
    """The attempts of each source without those that another has, and for each source what was left out."""

    parts: list[IngestedAttempts]
    notes: list[str | None]
    conflict: str | None = None


def combine(
    model: str,
    sources: Sequence[Source],
    parts: Sequence[IngestedAttempts],
    tables: Mapping[Path, AdapterTable] | None = None,
) -> Combined:
    """Combine what was read from the sources of a model, in their order; `tables` state how it was run."""
    combined = Combined(list(parts), [None] * len(parts))
    if len(parts) < 2:
        return combined
    _separate(combined, sources, _AGENT, pl.col(_AGENT))
    if _shared_by_parts(combined) is not None:
        _separate(combined, sources, _OPTION, pl.format(f"{_OPTION} {{}}", _OPTION))
    _separate_by_settings(combined, sources, [_settings(model, tables or {}, source) for source in sources])
    shared = _shared_by_parts(combined)
    if shared is None:
        return combined
    # What decides about all attempts, in one frame: there may be hundreds of files.
    numbered = enumerate(zip(sources, combined.parts, strict=True))
    rows = pl.concat([_deciding_columns(place, *each) for place, each in numbered]).collect()
    for leave_out, why in _STEPS:
        kept = leave_out(rows)
        _keep_only(combined, rows, kept, why)
        rows, shared = kept, _first_shared(kept.lazy())
        if shared is None:
            return combined
    if _number_runs_apart(sources, combined, rows):
        return combined
    sharing = rows.filter(*(pl.col(name) == value for name, value in zip(ATTEMPT_KEY, shared, strict=True)))
    names = " and ".join(sources[place].name for place in sharing[_PLACE].sort())
    shown = ", ".join(f"{name} '{value}'" for name, value in zip(ATTEMPT_KEY, shared, strict=True))
    keep = "keep one of them" + (", or name their runs in a column run_id" if sources[0].format in PLAIN_TABLES else "")
    return replace(combined, conflict=f"{names} both have an attempt of the model '{model}' at {shown}; {keep}")


def _separate(combined: Combined, sources: Sequence[Source], name: str, tier: pl.Expr) -> None:
    """Make a column the tier if the files of one format have several values of it, and no other tiers."""
    parts = combined.parts
    if not _can_be_runs(sources) or any(name not in part.attempts.collect_schema() for part in parts):
        return
    found = pl.concat(pl.collect_all([part.attempts.select("tier", name).unique() for part in parts]))
    is_free = (pl.col("tier") == DEFAULT_TIER) | (pl.col("tier") == pl.col(name))
    if not found[name].null_count() and found.select(is_free.all()).item() and found[name].n_unique() > 1:
        _set_tiers(combined, [tier] * len(parts), name)


def _separate_by_settings(
    combined: Combined, sources: Sequence[Source], settings: Sequence[Mapping[tuple[str | None, str], str]]
) -> None:
    """Make the settings that differ between files about the same problems the tier, unless they have tiers."""
    keys = sorted({key for each in settings for key in each}, key=str)
    differing = [key for key in keys if len({each[key] for each in settings if key in each}) > 1]
    if not differing or not _can_be_runs(sources):
        return
    problems = pl.concat(pl.collect_all([part.attempts.select("tier", "oid").unique() for part in combined.parts]))
    if problems["tier"].unique().to_list() == [DEFAULT_TIER] and problems["oid"].is_duplicated().any():
        told = [", ".join(f"{key[1]} {own[key]}" for key in differing if key in own) for own in settings]
        names = " and ".join(dict.fromkeys(name for _, name in differing))
        _set_tiers(combined, [pl.lit(each[:MAX_ID_LENGTH] or DEFAULT_TIER) for each in told], names)


def _settings(model: str, tables: Mapping[Path, AdapterTable], source: Source) -> dict[tuple[str | None, str], str]:
    """How a file says that a model was run, by suite and name."""
    return {
        (each.suite, each.name): each.value
        for each in (tables[source.path].settings if source.path in tables else ())
        if each.model == model and (each.dimension in _CONDITIONS or each.name == "task_args")
        if not _NO_CONDITION.search(each.name)
    }


def _set_tiers(combined: Combined, tiers: Sequence[pl.Expr], names: str) -> None:
    for place, (part, tier) in enumerate(zip(list(combined.parts), tiers, strict=True)):
        combined.parts[place] = replace(part, attempts=part.attempts.with_columns(tier=tier))
        combined.notes[place] = f"the tier is the {names}, of which the model's files have several"


def _can_be_runs(sources: Sequence[Source]) -> bool:
    """Whether several files of one format may be runs of a model, each in its own way."""
    return len({source.format for source in sources}) == 1 and sources[0].format != NATIVE


def _shared_by_parts(combined: Combined) -> tuple[str, ...] | None:
    return _first_shared(pl.concat([part.attempts.select(ATTEMPT_KEY) for part in combined.parts]))


def _first_shared(keys: pl.LazyFrame) -> tuple[str, ...] | None:
    """The first attempt that two parts have."""
    twice = keys.group_by(ATTEMPT_KEY).len().filter(pl.col("len") > 1).sort(ATTEMPT_KEY).head(1).collect()
    return None if twice.is_empty() else tuple(twice.select(ATTEMPT_KEY).row(0))


def _deciding_columns(place: int, source: Source, part: IngestedAttempts) -> pl.LazyFrame:
    uuid = pl.col(UUID) if UUID in part.attempts.collect_schema() else pl.lit(None, pl.String)
    own = (pl.lit(place).alias(_PLACE), pl.lit(source.format).alias(_FORMAT), uuid.alias(UUID))
    return part.attempts.select(*own, *ATTEMPT_KEY, "passed", "fix_sha", _RUN)


def _without_restated(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out attempts that a file of another format has too, unless both state an outcome and contradict.

    The file that states the fewest outcomes gives way: predictions to the report on them.
    """
    stated = rows.filter(pl.col(_FORMAT) != NATIVE).group_by(_PLACE, _FORMAT).agg(pl.col("passed").count())
    if stated[_FORMAT].n_unique() < 2:
        return rows
    for place, format_name, _ in stated.sort("passed", _PLACE, descending=[False, True]).iter_rows():
        others = rows.filter(~pl.col(_FORMAT).is_in([format_name, NATIVE])).sort("passed", nulls_last=True)
        known = others.unique(ATTEMPT_KEY, keep="first").select(
            *ATTEMPT_KEY, pl.col("passed").alias("__passed"), __known=pl.lit(True)
        )
        agrees = pl.col("passed").is_null() | pl.col("passed").eq_missing(pl.col("__passed"))
        restated = (pl.col(_PLACE) == place) & pl.col("__known").is_not_null() & agrees
        rows = rows.join(known, on=ATTEMPT_KEY, how="left").filter(~restated).drop("__passed", "__known")
    return rows


def _without_copied_samples(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out samples that an earlier file has under the same identifier."""
    can_be = pl.col(UUID).is_not_null() & (pl.col(_FORMAT) != NATIVE)
    return rows.filter(~can_be | (pl.col(_PLACE) == _first_place(can_be).over(UUID)))


def _without_same_fixes(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out attempts that an earlier file has with the same fix and outcome, if neither names a run."""
    # Some attempts have no fix; a file without any cannot show that it is a copy.
    with_fixes = rows.filter(pl.col("fix_sha").is_not_null())[_PLACE].unique().to_list()
    can_be = pl.col(_RUN).is_null() & pl.col(_PLACE).is_in(with_fixes) & (pl.col(_FORMAT) != NATIVE)
    return rows.filter(~can_be | (pl.col(_PLACE) == _first_place(can_be).over(*ATTEMPT_KEY, "fix_sha", "passed")))


def _first_place(condition: pl.Expr) -> pl.Expr:
    return pl.when(condition).then(_PLACE).min()


_STEPS = (
    (_without_restated, "another file has them too"),
    (_without_copied_samples, "copied from another log"),
    (_without_same_fixes, "the same fix is in another file"),
)


def _keep_only(combined: Combined, rows: pl.DataFrame, kept: pl.DataFrame, why: str) -> None:
    """Leave out the rows that are not kept from the parts that they belong to."""
    left = dict(kept[_PLACE].value_counts().iter_rows())
    for place, count in rows[_PLACE].value_counts().iter_rows():
        dropped = count - left.get(place, 0)
        if dropped:
            part, keys = combined.parts[place], kept.lazy().filter(pl.col(_PLACE) == place).select(ATTEMPT_KEY)
            rest = part.attempts.join(keys, on=ATTEMPT_KEY, how="semi", maintain_order="left")
            combined.parts[place] = replace(
                part, attempts=rest, rows=part.rows - dropped, accepted=part.accepted - dropped
            )
            note = f"{counted(dropped, 'attempt')} not counted again: {why}"
            combined.notes[place] = "; ".join(filter(None, (combined.notes[place], note)))


def _number_runs_apart(sources: Sequence[Source], combined: Combined, rows: pl.DataFrame) -> bool:
    """Number the attempts of further runs apart if all files have one format and none has the attempts of its run."""
    by_place = rows.group_by(_PLACE).agg(pl.col(_RUN).unique()).sort(_PLACE)
    runs = {place: found[0] for place, found in by_place.iter_rows() if len(found) == 1}
    apart = len(runs) == by_place.height and None not in runs.values()
    if not _can_be_runs(sources) or not apart or rows.select(_RUN, *ATTEMPT_KEY).is_duplicated().any():
        return False
    first, *_ = runs.values()
    for place, run in runs.items():
        if run == first:
            continue
        part = combined.parts[place]
        numbered = part.attempts.with_columns(iteration_id=pl.format("{}:{}", pl.lit(run), "iteration_id"))
        combined.parts[place] = replace(part, attempts=numbered)
        note = "another run, so its attempts are further ones (numbered <run>:1, …)"
        combined.notes[place] = "; ".join(filter(None, (combined.notes[place], note)))
    return True
