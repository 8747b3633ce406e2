"""The audit of passes: flags on fixes and transcripts that show how a pass may have come about without being earned.

A flag quotes its evidence and changes no verdict. Rules of evidence belong in `fixes` and `expected_values`, and
for transcripts, which are matched when they are read, in `ingest.transcripts`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from touchstone.audit.fixes import ChangedFile, ProblemTexts, changed_file, file_flags, fix_flags
from touchstone.config import EvaluationConfig
from touchstone.config.audit import AuditRule
from touchstone.ingest.attempts import TRANSCRIPT_FLAGS, sort_attempts
from touchstone.ingest.fix_columns import FIX_COLUMNS
from touchstone.ingest.transcripts import Flag
from touchstone.metrics.keys import ATTEMPT_KEY
from touchstone.progress import track
from touchstone.storage.store import Store
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of, visible

if TYPE_CHECKING:
    from touchstone.validation.fixes.apply_fix import Fix
    from touchstone.validation.stage import ValidationStage
    from touchstone.validation.targets import Target

# Columns of a problem that only its judge reads; its other texts are its statement.
_TESTS = ("test", "test_code", "test_list", "test_patch", "tests_code", "challenge_test_list")
_REFERENCES = ("reference_fix", "reference_patch", "patch", "canonical_solution", "solution")
_MAX_TEST_FILES = 200
_MAX_TEXT = 2_000_000
# Fixes in memory at once, and fixes whose flags are kept for others that are the same.
_BATCH_ROWS, _MOST_KNOWN = 10_000, 200_000


@dataclass
class PassAudit:
    """Audits the fixes of the models whose attempts changed."""

    config: EvaluationConfig
    store: Store
    validation: "ValidationStage"
    _problems: dict[str, ProblemTexts] = field(init=False, default_factory=dict)

    def audit_flags(
        self,
        problems: pl.LazyFrame,
        attempts: pl.LazyFrame,
        outcomes: pl.LazyFrame,
        problem_files: pl.LazyFrame,
        rules: Iterable[Mapping[str, Any]],
    ) -> pl.LazyFrame:
        """The table `audit_flags`. The frames say which models and attempts; texts are read from their parts."""
        del problems, problem_files  # They decide whether the table is current.
        known = [AuditRule(**rule) for rule in rules]
        has_fix, has_flags = pl.col("fix_sha").is_not_null(), pl.col(TRANSCRIPT_FLAGS) != "[]"
        judged = pl.col("changed_judge_files")
        models, seen, changed = pl.collect_all(
            [
                attempts.filter(has_fix).select("model").unique(),
                attempts.filter(has_flags).select(*ATTEMPT_KEY, TRANSCRIPT_FLAGS),
                outcomes.filter(judged.is_not_null()).select(*ATTEMPT_KEY, judged),
            ],
            engine="streaming",
        )
        with_fix = models["model"].sort().to_list()
        rows = [*_transcript_rows(seen), *self._fix_rows(with_fix, known), *_judge_rows(changed, known)]
        dtypes = TABLES["audit_flags"].dtypes
        if not rows:
            return pl.LazyFrame(schema=dtypes)
        flags = pl.LazyFrame(rows, schema={name: dtypes[name] for name in dtypes if name not in ("passed", "ruling")})
        passed = outcomes.select(*ATTEMPT_KEY, "passed", "ruling")
        joined = flags.join(passed, on=ATTEMPT_KEY, how="left", maintain_order="left").select(list(dtypes))
        return sort_attempts(joined, "model", stable=True)

    def _fix_rows(self, models: Iterable[str], rules: list[AuditRule]) -> Iterator[Flag]:
        known: dict[tuple[str, str], list[Flag]] = {}
        for model in models:
            own = self.store.scan_with_extras("attempts", model).filter(pl.col("fix_sha").is_not_null())
            present = [name for name in FIX_COLUMNS if name in own.collect_schema()]
            problems = own.group_by("oid").len().collect(engine="streaming")
            oids = problems["oid"].to_list()
            targets = self._targets(oids)
            self._read_problems(oids, targets)
            fixes = own.select(*ATTEMPT_KEY, "fix_sha", *present)
            with track(f"auditing {model}", int(problems["len"].sum())) as advance:
                for batch in fixes.collect_batches(maintain_order=True, chunk_size=_BATCH_ROWS, engine="streaming"):
                    for row in batch.iter_rows(named=True):
                        same = row["oid"], row["fix_sha"]
                        if same not in known:
                            known[same] = list(self._flags_of(row, targets.get(row["oid"]), rules))
                        yield from ({**{name: row[name] for name in ATTEMPT_KEY}, **flag} for flag in known[same])
                    advance(batch.height)
                    if len(known) > _MOST_KNOWN:
                        known.clear()

    def _targets(self, oids: list[str]) -> "dict[str, Target]":
        """The files of problems, if fixes of this evaluation are validated."""
        if self.config.clones_dir is None or self.config.validation.mode == "never":
            return {}
        from touchstone.validation.targets import Target

        found = self.validation.targets(oids)
        return {oid: target for oid, target in found.items() if isinstance(target, Target)}

    def _read_problems(self, oids: list[str], targets: "Mapping[str, Target]") -> None:
        missing = [oid for oid in oids if oid not in self._problems]
        rows = self.store.scan_with_extras("problems").filter(pl.col("oid").is_in(missing)) if missing else None
        for row in rows.collect().iter_rows(named=True) if rows is not None else ():
            self._problems[row["oid"]] = _problem_texts(row, targets.get(row["oid"]))

    def _flags_of(self, row: Mapping[str, Any], target: "Target | None", rules: list[AuditRule]) -> Iterator[Flag]:
        from touchstone.validation.fixes.apply_fix import choose_fix

        fix = choose_fix(row, self.config.validation.apply, target is not None and target.problem.has_block)
        if fix is None or len(fix.text) > _MAX_TEXT:
            return
        applied = _applied_files(fix, target) if target is not None else None
        files = applied if applied is not None else list(_written_files(fix))
        problem = self._problems.get(row["oid"], ProblemTexts())
        yield from ({"source": "fix", **flag} for flag in fix_flags([file for _, file in files], rules, problem))
        paths = [f"{'new ' if is_new else ''}{file.path}" for is_new, file in files if file.path]
        yield from ({"source": "files", **flag} for flag in file_flags(paths, (), rules))


def _problem_texts(row: Mapping[str, Any], target: "Target | None") -> ProblemTexts:
    texts = {name: value for name, value in row.items() if isinstance(value, str)}
    tests = {name: _added_text(texts[name]) for name in _TESTS if name in texts}
    reference = "\n".join(_added_text(texts[name]) for name in _REFERENCES if name in texts)
    statement = "\n".join(text for name, text in texts.items() if name not in (*_TESTS, *_REFERENCES))
    source = ""
    if target is not None:
        files = [path for path in target.problem.judge_files if path in target.tree.files][:_MAX_TEST_FILES]
        tests |= {path: _text(target.tree.read(path)) for path in files}
        source = _text(target.tree.read(target.problem.path)) if target.problem.path in target.tree.files else ""
    return ProblemTexts(tests, reference, source, statement)


def _text(content: bytes) -> str:
    return content[:_MAX_TEXT].decode("utf-8", "replace")


def _added_text(text: str) -> str:
    """The lines that a patch adds; any other text as it is."""
    files = list(_patched_files(text))
    return "\n".join(file.lines[number - 1] for _, file in files for number in sorted(file.added)) if files else text


def _applied_files(fix: "Fix", target: "Target") -> list[tuple[bool, ChangedFile]] | None:
    """The files that a fix changes, each with whether it is new; None if it cannot be applied."""
    from touchstone.validation.fixes.apply_fix import AppliedFix, apply_fix

    applied = apply_fix(target.tree, fix, target.problem)
    if not isinstance(applied, AppliedFix):
        return None
    known = frozenset(target.tree.files)
    return [
        (path not in known, changed_file(path, _text(target.tree.read(path)) if path in known else "", _text(content)))
        for path, content in applied.changes.items()
        if content is not None
    ]


def _written_files(fix: "Fix") -> Iterator[tuple[bool, ChangedFile]]:
    """The files of a fix as it was written, where the original is not at hand."""
    from touchstone.validation.fixes.extract_code import extract_code

    if fix.kind == "files":
        try:
            contents = json.loads(fix.text)
        except (ValueError, RecursionError):
            contents = None
        if isinstance(contents, dict):
            yield from (
                (False, changed_file(path, "", text)) for path, text in contents.items() if isinstance(text, str)
            )
            return
    patched = list(_patched_files(fix.text)) if fix.kind == "diff" else []
    yield from patched or [(False, changed_file("", "", extract_code(fix.text)))]


def _patched_files(text: str) -> Iterator[tuple[bool, ChangedFile]]:
    """The files of a unified diff: the lines of its hunks as they are afterwards."""
    from touchstone.validation.fixes.unified_diff import PatchError, parse_diff

    if "@@" not in text:
        return
    try:
        patches = parse_diff(text)
    except PatchError:
        return
    for patch in patches:
        before = [line for hunk in patch.hunks or () for line in hunk.before]
        after = [line for hunk in patch.hunks or () for line in hunk.after]
        if patch.new is not None:
            yield patch.old is None, changed_file(patch.new, _text(b"".join(before)), _text(b"".join(after)))


def _transcript_rows(attempts: pl.DataFrame) -> Iterator[Flag]:
    for row in attempts.iter_rows(named=True):
        flags = json.loads(row.pop(TRANSCRIPT_FLAGS))
        yield from ({**row, "source": "transcript", **flag} for flag in flags)


def _judge_rows(outcomes: pl.DataFrame, rules: list[AuditRule]) -> Iterator[Flag]:
    for row in outcomes.iter_rows(named=True):
        files = row.pop("changed_judge_files").splitlines()
        yield from ({**row, "source": "files", **flag} for flag in file_flags((), files, rules))


def pass_audit(attempts: pl.LazyFrame, outcomes: pl.LazyFrame, audit_flags: pl.LazyFrame) -> pl.LazyFrame:
    """The table `pass_audit`: how many passes of a model and tier were audited, and how many have flags."""
    side, passes = ["model", "tier"], pl.col("passed").sum()
    read = attempts.select(
        *ATTEMPT_KEY, fix=pl.col("fix_sha").is_not_null(), seen=pl.col(TRANSCRIPT_FLAGS).is_not_null()
    )
    if not read.select((pl.col("fix") | pl.col("seen")).any()).collect(engine="streaming").item():
        # Nothing was there to be read, so that nothing need be joined.
        counts = outcomes.group_by(side).agg(passes=passes, not_audited=passes)
        nothing = {"fixes_read": 0, "transcripts_read": 0, "flagged": None, "worth_a_look": None}
        return counts.with_columns(**nothing).select(list(TABLES["pass_audit"].dtypes)).sort(side)
    is_flagged = (pl.col("severity") == "high").any().alias("is_flagged")
    flags = audit_flags.filter(pl.col("ruling").is_null()).group_by(ATTEMPT_KEY).agg(is_flagged)
    every = (
        outcomes.select(*ATTEMPT_KEY, "passed")
        .join(read, on=ATTEMPT_KEY, how="left")
        .join(flags, on=ATTEMPT_KEY, how="left")
    )
    passed, flagged = pl.col("passed").fill_null(False), pl.col("is_flagged")
    return (
        every.group_by(side)
        .agg(
            passes=passes,
            fixes_read=(passed & pl.col("fix")).sum(),
            transcripts_read=(passed & pl.col("seen")).sum(),
            not_audited=(passed & ~pl.col("fix") & ~pl.col("seen")).sum(),
            flagged=(passed & flagged.fill_null(False)).sum(),
            worth_a_look=(passed & ~flagged.fill_null(True)).sum(),
        )
        .with_columns(pl.when(pl.col("passes") > pl.col("not_audited")).then(pl.col("flagged", "worth_a_look")))
        .sort(side)
    )


def counts_against() -> pl.Expr:
    """Whether a flag says that a pass may not count: of severity high, on an attempt on which no person has ruled."""
    return pl.col("passed").fill_null(False) & pl.col("ruling").is_null() & (pl.col("severity") == "high")


def no_flagged_passes(pass_audit: pl.LazyFrame, audit_flags: pl.LazyFrame, gate: str) -> CheckResult:
    """No pass has a flag of severity high."""
    counts = pass_audit.select(pl.col("passes", "flagged", "worth_a_look", "not_audited").sum()).collect()
    passes, flagged, look, not_audited = (int(value or 0) for value in counts.row(0))
    figures = {"flagged": flagged, "worth_a_look": look, "not_audited": not_audited, "passes": passes}
    if not flagged:
        audited = passes - not_audited
        message = f"none of {counted(audited, 'audited pass', 'audited passes')} is flagged" if audited else ""
        if look:
            message += f"; {counted(look, 'has', 'have')} something worth a look"
        if not_audited:
            left = f"{counted(not_audited, 'pass has', 'passes have')} neither a fix nor a transcript to audit"
            message += f"; {left}" if message else left
        return CheckResult(True, message or "there is no pass to audit", error=gate == "error", figures=figures)
    first = audit_flags.filter(counts_against()).head(1).collect().row(0, named=True)
    example = f"{first['model']} at {first['oid']}, {first['rule']} in {first['place']}: {first['evidence']}"
    message = f"{counted_of(flagged, passes, 'pass', 'passes')} {'is' if flagged == 1 else 'are'} flagged "
    message += f"(for example {visible(example)}); see the table audit_flags"
    return CheckResult(False, message, error=gate == "error", figures=figures)
