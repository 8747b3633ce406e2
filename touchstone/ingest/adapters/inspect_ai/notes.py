"""What a user should know about an Inspect log before trusting figures made from it."""

from collections.abc import Collection, Iterator, Sequence

from touchstone.ingest.adapters.inspect_ai.samples import Attempt, short
from touchstone.ingest.adapters.inspect_ai.scores import PASS_VALUE, ScoreName, known_number, listed
from touchstone.ingest.adapters.inspect_ai.source import Object, section
from touchstone.ingest.adapters.json_values import text_of
from touchstone.ingest.adapters.lossless_json import Number

LEFT_OUT = "transcripts, inputs and targets of samples are left out"

_KNOWN_VERSIONS = ("1", "2", "3")
_FINE = ("success", None)


def run_notes(header: Object, attempts: int, *, finished: bool) -> Iterator[str]:
    """How the run ended, and whether the file has all of it."""
    version = text_of(header.get("version"))
    if version not in _KNOWN_VERSIONS:
        yield f"log version {version} is not one that was tested ({', '.join(_KNOWN_VERSIONS)})"
    status = text_of(header.get("status"))
    if not finished or status == "started":
        yield "the run did not end: it was killed or is still going on"
    elif status not in _FINE:
        message = short(text_of(section(header, "error").get("message")))
        yield f"the run ended with status {status}" + (f": {message}" if message else "")
    total = _planned(header)
    if total > attempts:
        yield f"{attempts:,} of {total:,} attempts are in the file"


def _planned(header: Object) -> int:
    """How many attempts the run was to have; 0 if the log does not say."""
    total = section(header, "results").get("total_samples")
    if isinstance(total, Number):
        return _count(total)
    spec = section(header, "eval")
    ids = section(spec, "dataset").get("sample_ids")
    return len(ids) * (_count(section(spec, "config").get("epochs")) or 1) if isinstance(ids, list) else 0


def _count(value: object) -> int:
    return int(value) if isinstance(value, Number) and value.isdecimal() and len(value) < 16 else 0


def score_notes(attempts: Collection[Attempt], scores: Sequence[ScoreName], chosen: ScoreName | None) -> Iterator[str]:
    """Which of several scores decides, where they disagree, and values that are no plain verdict."""
    if chosen is None:
        yield "no sample has a score, so every attempt is undecided"
        return
    others = [name for name in scores if name != chosen]
    if chosen not in scores:
        yield f"the score {chosen} has several values and decides nothing; --scorer chooses one: {listed(others)}"
    elif others:
        yield f"the score {chosen} decides; --scorer chooses another one: {listed(others)}"
    for name in others[:5]:
        both = [(attempt.values.get(chosen), attempt.values.get(name)) for attempt in attempts]
        pairs = [(one, other) for one, other in ((known_number(a), known_number(b)) for a, b in both)]
        differ = sum((a >= PASS_VALUE) != (b >= PASS_VALUE) for a, b in pairs if a is not None and b is not None)
        if differ:
            yield f"the score {name} disagrees on whether an attempt passed for {differ:,} of {len(attempts):,}"
    values = [attempt.values[chosen] for attempt in attempts if chosen in attempt.values]
    numbers = [number for number in map(known_number, values) if number is not None]
    if any(number > PASS_VALUE or number < 0 for number in numbers):
        yield f"the score {chosen} has values from {min(numbers):g} to {max(numbers):g}; at least 1 counts as passed"
    words = sorted({value for value in values if isinstance(value, str) and known_number(value) is None})
    if words:
        yield f"the score {chosen} has values that Inspect counts as 0: {', '.join(map(repr, words[:5]))}"
