"""Transcripts at ingest: what a model did is matched against the rules of the audit, and only the flags are kept.

The flags of an attempt travel with it as JSON in the further column `transcript_flags`, which is null for an attempt
without a transcript. How a tool writes its transcripts belongs in its adapter, and what a step is in `adapters.steps`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from touchstone.config.audit import AuditRule
from touchstone.errors import InputFileError, reason_of
from touchstone.ingest.adapters import AdapterTable, ReadOptions, adapter_of
from touchstone.ingest.adapters.steps import Step
from touchstone.ingest.adapters.table import RefusedRecordError, encodable
from touchstone.ingest.csv_rows import LINE

MAX_EVIDENCE = 300
# Of one rule at one attempt: more of the same says nothing new.
_MAX_OF_RULE = 3

Flag = dict[str, Any]

_GIT_COMMIT = re.compile(
    r"^run: .*\bgit\b[^|;&]*\b(?:show|checkout|cherry-pick|diff|reset|restore|switch|format-patch)\b[^|;&]*?\s"
    r"(?:--source[= ])?(?:([0-9a-f]{7,40})\b|((?:origin|upstream)/[\w./-]+|FETCH_HEAD))"
)
_HASH = re.compile(r"\b[0-9a-f]{7,40}\b")
_GIT = re.compile(r"^run: .*\bgit\b")
_CREATED = re.compile(r"^create: (\S+)|^run: .*?(?:[^<>&2]>|\btee)\s*([\w./-]+)")


def read_transcript_flags(
    table: AdapterTable, rules: Sequence[AuditRule], options: ReadOptions | None = None
) -> tuple[dict[int, str], str | None]:
    """The flags of every transcript in a file, as JSON by the line of its record, and why some could not be read."""
    transcripts = adapter_of(table.format, options).transcripts
    if transcripts is None:
        return {}, None
    with table.reading():
        oids = dict(table.rows.select(LINE, "oid").collect().iter_rows())
    flags: dict[int, str] = {}
    try:
        for line, steps in transcripts(table):
            if line in oids:
                flags[line] = json.dumps(transcript_flags(steps, rules, oids[line] or ""))
    except (InputFileError, RefusedRecordError, RecursionError, OSError) as error:
        said = reason_of(getattr(error, "reason", error), table.path)
        return flags, f"transcripts were not audited to the end: {encodable(said)}"
    return flags, None


def transcript_flags(steps: Iterable[Step], rules: Sequence[AuditRule], oid: str) -> list[Flag]:
    """The matches of the rules in a transcript: rule, severity, step and line."""
    looking = [rule for rule in rules if rule.look == "transcript"]
    patterns = [(rule, pattern) for rule in looking if rule.pattern and (pattern := rule.compiled(oid))]
    later = next((rule for rule in looking if rule.kind == "git_later_commit"), None)
    history = [pattern for rule, pattern in patterns if rule.name == "git_history"]
    without_flags = (re.sub(r"^\(\?[a-z]+\)", "", pattern.pattern) for _, pattern in patterns)
    any_of = re.compile("|".join(f"(?:{pattern})" for pattern in without_flags) or r"(?!)", re.IGNORECASE)
    found: list[Flag] = []
    counts: Counter[str] = Counter()
    # Commits that the task names, or that the model saw without looking beyond the history that was checked out.
    shown: set[str] = set()
    created: set[str] = set()
    is_known = True
    for step in steps:
        if step.lines:
            is_known = any(_GIT.search(line) for line in step.lines)
        for line in step.lines:
            matched = [rule for rule, pattern in patterns if pattern.search(line)] if any_of.search(line) else []
            if later is not None and not matched and _is_unknown_commit(line, shown):
                matched = [later]
            is_known = is_known and not any(pattern.search(line) for pattern in history)
            is_own = any(name in line for name in created)
            for rule in (rule for rule in matched if not (rule.not_own and is_own)):
                counts[rule.name] += 1
                if counts[rule.name] <= _MAX_OF_RULE:
                    found.append(_flag(rule, f"step {step.number}", line))
            if (made := _CREATED.search(line)) and (name := (made[1] or made[2]).rpartition("/")[2]):
                created.add(name)
        if is_known and step.output:
            shown.update(_HASH.findall(step.output))
    return found


def _is_unknown_commit(line: str, shown: set[str]) -> bool:
    found = _GIT_COMMIT.search(line)
    if found is None:
        return False
    name = found[1]
    return name is None or not any(each.startswith(name) or name.startswith(each) for each in shown)


def _flag(rule: AuditRule, place: str, line: str) -> Flag:
    text = encodable(line)
    shown = text if len(text) <= MAX_EVIDENCE else text[:MAX_EVIDENCE] + "…"
    return {"rule": rule.name, "severity": rule.severity, "place": place, "evidence": shown}
