"""The attempts of one model from several files: what is in two of them counts once, and further runs add attempts.

These cases are safe to combine. If files of two formats have the same attempt, such as predictions and the report on
them, and do not contradict each other, it counts once. So does the same fix in two files that name no run, and a sample
that a tool copied from an earlier log, which has the same `sample_uuid`. And attempts with the same number in two files
of one format are different attempts if the files are different runs. Anything else is refused: counting an attempt
twice would be a wrong figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from touchstone.ingest.attempts import ATTEMPT_KEY, IngestedAttempts
from touchstone.ingest.sources import NATIVE, Source
from touchstone.text import counted

UUID = "sample_uuid"
_RUN = "run_id"


@dataclass(frozen=True)
class Combined:
    """The attempts of each source without those that another has, and for each source what was left out."""

    parts: list[IngestedAttempts]
    notes: list[str | None]
    conflict: str | None = None


def combine(model: str, sources: Sequence[Source], parts: Sequence[IngestedAttempts]) -> Combined:
    """Combine what was read from the sources of a model, in their order."""
    combined = Combined(list(parts), [None] * len(parts))
    shared = _first_shared(combined.parts) if len(parts) > 1 else None
    for step in (_without_restated, _without_copied_samples, _without_same_fixes, _with_runs_apart):
        if shared is not None:
            combined = step(sources, combined)
            shared = _first_shared(combined.parts)
    if shared is None:
        return combined
    names = " and ".join(
        source.name for source, part in zip(sources, combined.parts, strict=True) if _has(part, shared)
    )
    shown = ", ".join(f"{name} '{value}'" for name, value in zip(ATTEMPT_KEY, shared, strict=True))
    return replace(
        combined, conflict=f"{names} both have an attempt of the model '{model}' at {shown}; keep one of them"
    )


def _first_shared(parts: Sequence[IngestedAttempts]) -> tuple[str, ...] | None:
    """The first attempt that two parts have."""
    keys = pl.concat([part.attempts.select(ATTEMPT_KEY) for part in parts])
    twice = keys.group_by(ATTEMPT_KEY).len().filter(pl.col("len") > 1).sort(ATTEMPT_KEY).head(1).collect()
    return None if twice.is_empty() else tuple(twice.select(ATTEMPT_KEY).row(0))


def _has(part: IngestedAttempts, key: tuple[str, ...]) -> bool:
    same = [pl.col(name) == value for name, value in zip(ATTEMPT_KEY, key, strict=True)]
    return _count(part.attempts.filter(*same)) > 0


def _without_restated(sources: Sequence[Source], combined: Combined) -> Combined:
    """Leave out attempts that a file of another format has too, unless both state an outcome and contradict.

    The file that states the fewest outcomes gives way: predictions to the report on them.
    """
    stated = [_count(part.attempts.filter(pl.col("passed").is_not_null())) for part in combined.parts]
    for place in sorted(range(len(stated)), key=lambda each: (stated[each], -each)):
        others = [
            part.attempts.select(*ATTEMPT_KEY, pl.col("passed").alias("__passed"), __known=pl.lit(True))
            for source, part in zip(sources, combined.parts, strict=True)
            if source.format not in (sources[place].format, NATIVE) and sources[place].format != NATIVE
        ]
        if others:
            known = pl.concat(others).sort("__passed", nulls_last=True).unique(ATTEMPT_KEY, keep="first")
            agrees = pl.col("passed").is_null() | pl.col("passed").eq_missing(pl.col("__passed"))
            restated = pl.col("__known").is_not_null() & agrees
            combined = _without_known(combined, place, known, restated, "another file has them too")
    return combined


def _without_same_fixes(sources: Sequence[Source], combined: Combined) -> Combined:
    """Leave out attempts that an earlier file has with the same fix and outcome, if neither names a run."""
    same = pl.col("fix_sha").eq_missing(pl.col("__fix")) & pl.col("passed").eq_missing(pl.col("__passed"))
    for place in range(1, len(combined.parts)):
        earlier = [
            part.attempts.filter(pl.col(_RUN).is_null()).select(
                *ATTEMPT_KEY, pl.col("fix_sha").alias("__fix"), pl.col("passed").alias("__passed"), __known=pl.lit(True)
            )
            for source, part in zip(sources[:place], combined.parts, strict=False)
            if source.format != NATIVE and sources[place].format != NATIVE
        ]
        if earlier:
            known = pl.concat(earlier).unique(ATTEMPT_KEY)
            repeated = pl.col("__known").is_not_null() & pl.col(_RUN).is_null() & same
            combined = _without_known(combined, place, known, repeated, "the same fix is in another file")
    return combined


def _without_known(combined: Combined, place: int, known: pl.LazyFrame, is_copy: pl.Expr, why: str) -> Combined:
    """Leave out the attempts of one source that `is_copy` finds beside the columns of `known`."""
    attempts = combined.parts[place].attempts.join(known, on=ATTEMPT_KEY, how="left")
    rest = attempts.filter(~is_copy).select(pl.exclude("__passed", "__fix", "__known"))
    return _left_out(combined, place, rest, why)


def _without_copied_samples(sources: Sequence[Source], combined: Combined) -> Combined:
    """Leave out samples that an earlier file has under the same identifier."""
    for place in range(1, len(combined.parts)):
        part = combined.parts[place]
        if sources[place].format == NATIVE or UUID not in part.attempts.collect_schema():
            continue
        earlier = [
            before.attempts.select(UUID)
            for before, source in zip(combined.parts[:place], sources, strict=False)
            if source.format != NATIVE and UUID in before.attempts.collect_schema()
        ]
        if earlier:
            known = pl.concat(earlier).drop_nulls()
            rest = part.attempts.join(known, on=UUID, how="anti", nulls_equal=False)
            combined = _left_out(combined, place, rest, "copied from another log")
    return combined


def _with_runs_apart(sources: Sequence[Source], combined: Combined) -> Combined:
    """Number the attempts of further runs apart if all files have one format and each is a run of its own."""
    runs = [_run_of(part) for part in combined.parts]
    one_format = len({source.format for source in sources}) == 1 and sources[0].format != NATIVE
    if not one_format or None in runs or len(set(runs)) < len(runs):
        return combined
    for place in range(1, len(runs)):
        part = combined.parts[place]
        numbered = part.attempts.with_columns(iteration_id=pl.format("{}:{}", pl.lit(runs[place]), "iteration_id"))
        combined.parts[place] = replace(part, attempts=numbered)
        combined.notes[place] = _joined(
            combined.notes[place], f"another run, so its attempts are further ones ({runs[place]}:1, …)"
        )
    return combined


def _run_of(part: IngestedAttempts) -> str | None:
    """The run that all attempts of a part belong to."""
    runs = part.attempts.select(pl.col(_RUN).unique()).collect()[_RUN].to_list()
    return runs[0] if len(runs) == 1 else None


def _left_out(combined: Combined, place: int, rest: pl.LazyFrame, why: str) -> Combined:
    part = combined.parts[place]
    kept = rest.collect()
    dropped = part.accepted - kept.height
    if dropped == 0:
        return combined
    combined.parts[place] = replace(
        part, attempts=kept.lazy(), rows=part.rows - dropped, accepted=part.accepted - dropped
    )
    note = f"{counted(dropped, 'attempt')} not counted again: {why}"
    combined.notes[place] = _joined(combined.notes[place], note)
    return combined


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None


def _count(rows: pl.LazyFrame) -> int:
    return int(rows.select(pl.len()).collect().item())
