"""Had the model seen the answer? Two views, neither of which is a proof.

`contamination`: pass@1 on problems from before a model's training cutoff minus that on later ones. They are different
problems, so the comparison is unpaired, and older problems may simply be easier.

`reference_overlap`: how much of what a fix adds is word for word what the reference fix adds. Fixes that pass resemble
the reference anyway, because both solve the problem; fixes that fail show how much of that the problem itself brings.
A 5-gram is five tokens (words, numbers, signs) in a row. Those of the file before the fix do not count.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from touchstone.config import IntervalSettings
from touchstone.inference.multiplicity import adjust_p_values
from touchstone.inference.units import UNIT, with_unit_ids
from touchstone.inference.unpaired import Sample, UnpairedDifference, unpaired_difference
from touchstone.ingest.slice_values import AFTER, BEFORE
from touchstone.metrics.keys import MODEL_TIER
from touchstone.metrics.pass_at_k import problem_counts
from touchstone.metrics.slices import in_slices
from touchstone.tables import TABLES

Ngrams = frozenset[tuple[str, ...]]
_TOKENS_IN_A_ROW = 5
_TOKEN = re.compile(r"\w+|[^\w\s]")


def contamination(
    problem_pass_at_k: pl.LazyFrame,
    problems: pl.LazyFrame,
    problem_slices: pl.LazyFrame,
    alpha: float,
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `contamination`: pass@1 before minus after the cutoff, per model and tier with a cutoff.

    p-values are adjusted for all models, tiers and columns (Holm).
    """
    table = TABLES["contamination"]
    sides = problem_slices.filter(
        pl.col("cutoff_model").is_not_null(), pl.col("value").is_in([BEFORE, AFTER])
    ).collect()
    if sides.is_empty():
        return pl.LazyFrame(schema=table.dtypes)
    decided = problem_counts(problem_pass_at_k).filter(pl.col("n") > 0).collect()
    placed = with_unit_ids(in_slices(decided, sides).lazy(), problems).collect()
    rates = placed.select(*MODEL_TIER, "column", "value", UNIT, rate=pl.col("c") / pl.col("n"))
    rows = []
    for key, each in rates.sort(*MODEL_TIER, "column").group_by(*MODEL_TIER, "column", maintain_order=True):
        before, after = (_sample(each.filter(pl.col("value") == side), "rate") for side in (BEFORE, AFTER))
        rows.append(
            dict(zip((*MODEL_TIER, "column"), key, strict=True))
            | {"problems_before": len(before.values), "problems_after": len(after.values)}
            | {"pass_at_1_before": _mean(before), "pass_at_1_after": _mean(after)}
            | _difference(unpaired_difference(before, after, intervals))
        )
    return pl.LazyFrame(_with_findings(rows, alpha), schema=table.dtypes)


def _sample(rows: pl.DataFrame, figure: str) -> Sample:
    return Sample(rows[figure].to_numpy(), rows[UNIT].to_numpy())


def _mean(sample: Sample) -> float | None:
    return math.fsum(sample.values) / len(sample.values) if len(sample.values) else None


def _difference(found: UnpairedDifference) -> dict[str, Any]:
    method = None if found.low is None else "newcombe"
    ends = {"ci_low": found.low, "ci_high": found.high, "ci_method": method}
    return {"difference": found.difference, **ends, "p_value": found.p_value}


def _with_findings(rows: list[dict[str, Any]], alpha: float) -> Iterator[dict[str, Any]]:
    tested = [row for row in rows if row["p_value"] is not None]
    adjusted = adjust_p_values(np.array([row["p_value"] for row in tested]), "all")
    for row, p_adjusted in zip(tested, adjusted.tolist(), strict=True):
        row["p_adjusted"] = p_adjusted
        better = "higher before" if row["difference"] > 0 else "lower before"
        row["finding"] = better if p_adjusted <= alpha else "no evidence"
    for row in rows:
        yield {"p_adjusted": None, "finding": "too few problems"} | row


def reference_overlap(
    validated_fixes: pl.LazyFrame,
    problem_files: pl.LazyFrame,
    outcomes: pl.LazyFrame,
    problems: pl.LazyFrame,
    intervals: IntervalSettings,
) -> pl.LazyFrame:
    """The table `reference_overlap`: the overlap of passing and of failing fixes with the reference fix, per model.

    Each is the mean over problems of the mean over fixes. Only fixes that were validated here and add at least one
    5-gram count, on problems with a reference fix.
    """
    table = TABLES["reference_overlap"]
    references = problem_files.filter(pl.col("reference_diff").is_not_null()).collect()
    if references.is_empty():
        return pl.LazyFrame(schema=table.dtypes)
    key = list(TABLES["validated_fixes"].key)
    verdicts = outcomes.filter(pl.col("passed").is_not_null()).select(*key, "passed")
    fixes = validated_fixes.filter(pl.col("diff").is_not_null(), pl.col("oid").is_in(references["oid"].implode()))
    judged = fixes.select(*key, "diff").join(verdicts, on=key).collect()
    overlaps = _overlaps(judged.select("oid", "diff").unique(), references)
    found = judged.join(overlaps, on=["oid", "diff"]).filter(pl.col("overlap").is_not_null())
    by_problem = found.group_by(*MODEL_TIER, "oid", "passed").agg(
        # Sorted, so that the sum does not depend on the order of rows.
        overlap=pl.col("overlap").sort().mean(),
        fixes=pl.len(),
    )
    placed = with_unit_ids(by_problem.lazy(), problems).sort(*MODEL_TIER, "oid").collect()
    rows = [
        dict(zip(MODEL_TIER, group, strict=True)) | _overlap_figures(each, intervals)
        for group, each in placed.group_by(MODEL_TIER, maintain_order=True)
    ]
    return pl.LazyFrame(rows, schema=table.dtypes)


def _overlap_figures(by_problem: pl.DataFrame, intervals: IntervalSettings) -> dict[str, Any]:
    passed, failed = (by_problem.filter(pl.col("passed") == side) for side in (True, False))
    samples = _sample(passed, "overlap"), _sample(failed, "overlap")
    difference = _difference(unpaired_difference(*samples, intervals))
    return {
        "problems": by_problem["oid"].n_unique(),
        "fixes_passed": int(passed["fixes"].sum()),
        "fixes_failed": int(failed["fixes"].sum()),
        "overlap_passed": _mean(samples[0]),
        "overlap_failed": _mean(samples[1]),
        **{name: figure for name, figure in difference.items() if name != "p_value"},
    }


def _overlaps(diffs: pl.DataFrame, references: pl.DataFrame) -> pl.DataFrame:
    """The overlap of every distinct diff of a problem with the problem's reference fix."""
    known: Mapping[str, tuple[Ngrams, Ngrams]] = {
        oid: (_ngrams(text or "") | _side(reference, "-"), _side(reference, "+"))
        for oid, text, reference in references.select("oid", "text", "reference_diff").iter_rows()
    }
    shares = [overlap(diff, *known[oid]) for oid, diff in diffs.iter_rows()]
    return diffs.with_columns(overlap=pl.Series(shares, dtype=pl.Float64))


def overlap(diff: str, before: Ngrams, reference: Ngrams) -> float | None:
    """The share of the 5-grams that a fix adds which the reference fix has too; null if it adds none.

    >>> reference = _side("@@ -1 +1 @@\\n-return total\\n+return total / len(values) if values else 0", "+")
    >>> overlap("@@ -1 +1 @@\\n-return total\\n+return total / len(values) or 0", _ngrams("return total"), reference)
    0.6
    """
    added = _side(diff, "+") - _side(diff, "-") - before
    return len(added & reference) / len(added) if added else None


def _side(diff: str, sign: str) -> Ngrams:
    """The 5-grams of a diff's hunks before (`-`) or after (`+`) the change, with the lines around it."""
    found: Ngrams = frozenset()
    for hunk in re.split(r"^@@.*$", diff, flags=re.MULTILINE)[1:]:
        lines = [line[1:] for line in hunk.split("\n") if line[:1] in (" ", sign) and not line.startswith(_HEADERS)]
        found |= _ngrams("\n".join(lines))
    return found


_HEADERS = ("--- a/", "+++ b/", "--- /dev/null", "+++ /dev/null")


def _ngrams(text: str) -> Ngrams:
    tokens = _TOKEN.findall(text)
    return frozenset(zip(*(tokens[place:] for place in range(_TOKENS_IN_A_ROW)), strict=False))
