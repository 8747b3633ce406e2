"""Checks of the input: files, quarantine and keys."""

import polars as pl

from touchstone.config import CheckLimits
from touchstone.ingest.attempts import keys_increase_streamed
from touchstone.tables import TABLES
from touchstone.tables.checks import CheckResult
from touchstone.text import counted, counted_of
from touchstone.vocabulary import FILE_STATUSES

# How many files a message lists by name.
_MOST_NAMED = 20
_ROUNDED = 0.0005 + 1e-9


def files_readable(quarantine: pl.LazyFrame) -> CheckResult:
    """Every fixes file could be read."""
    broken = quarantine.lazy().filter(pl.col("kind") == "unreadable_file").sort("source_file").collect()
    message = "; ".join(broken["reason"].unique(maintain_order=True)) or "every file could be read"
    return CheckResult(broken.is_empty(), message, error=True, figures={"unreadable_files": broken.height})


def rows_accepted(sources: pl.LazyFrame) -> CheckResult:
    """Unless there are no rows at all, at least one became an attempt."""
    files = sources.filter(pl.col("model").is_not_null()).collect()
    refused = files.filter((pl.col("status") == "refused") | (pl.col("quarantined") > 0))
    accepted = int(files["accepted"].sum())
    if accepted or refused.is_empty():
        return CheckResult(True, f"{counted(accepted, 'row')} accepted", figures={"accepted_rows": accepted})
    message = (
        f"no row of {counted(refused['source_file'].n_unique(), 'fixes file')} could be used; see the table quarantine"
    )
    return CheckResult(False, message, error=True, figures={"accepted_rows": 0})


def files_accounted_for(sources: pl.LazyFrame) -> CheckResult:
    """Every data file is evaluated, or left out by the configuration."""
    files = sources.lazy().sort("source_file", "model").collect()
    counts = dict(files.group_by("status").agg(pl.col("source_file").n_unique()).iter_rows())
    figures = {f"files_{status}": counts.get(status, 0) for status in FILE_STATUSES}
    unknown, left_out = (_listed(files.filter(pl.col("status") == status)) for status in ("unknown", "left_out"))
    messages = [f"{counted(figures['files_evaluated'], 'file')} evaluated"]
    messages += [f"{counted(figures['files_unknown'], 'data file')} not evaluated: {unknown}"] if unknown else []
    messages += [f"left out by the config: {left_out}"] if left_out else []
    return CheckResult(not unknown, "; ".join(messages), figures=figures)


def _listed(files: pl.DataFrame) -> str:
    named = [f"{file} ({reason})" for file, reason in files.select("source_file", "reason").iter_rows()]
    more = [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return "; ".join([*named[:_MOST_NAMED], *more])


def quarantine_share(sources: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """No file has more than the allowed share of quarantined rows."""
    files = sources.lazy().collect()
    judged = files.filter(pl.col("rows") > 0).with_columns(share=pl.col("quarantined") / pl.col("rows"))
    worst_first = judged.sort("share", "model", "source_file", descending=[True, False, False])
    over = worst_first.filter(pl.col("share") > limits.max_quarantine_share)
    refused, rows = int(files["quarantined"].sum()), int(files["rows"].sum())
    message = f"{counted_of(refused, rows, 'row')} {'is' if refused == 1 else 'are'} in quarantine"
    if over.height:
        named = [
            f"{share:.1%} of {file}" + (f" ({model})" if model else "")
            for share, file, model in over.select("share", "source_file", "model").iter_rows()
        ]
        message += f"; more than {limits.max_quarantine_share:.1%}: {', '.join(named)}"
    worst = worst_first["share"][0] if worst_first.height else 0.0
    figures = {"quarantined_rows": refused, "worst_share": worst, "over": over.height}
    return CheckResult(over.is_empty(), message, error=True, figures=figures)


def unknown_oids(sources: pl.LazyFrame, quarantine: pl.LazyFrame, limits: CheckLimits) -> CheckResult:
    """The fixes refer to problems in the problems file."""
    strangers = quarantine.lazy().filter(pl.col("kind") == "unknown_oid").sort("source_file", "line").collect()
    rows = int(sources.lazy().select(pl.col("rows").sum()).collect().item())
    share = strangers.height / rows if rows else 0.0
    name = "names" if strangers.height == 1 else "name"
    message = f"{counted_of(strangers.height, rows, 'row')} {name} an oid that is not in the problems file"
    if strangers.height:
        file, line, reason = strangers.select("source_file", "line", "reason").row(0)
        message += f" (for example {file}, line {line}: {reason})"
    figures = {"unknown_oids": strangers.height, "share": share}
    return CheckResult(share <= limits.max_unknown_oid_share, message, figures=figures)


def figures_reproduced(reported_figures: pl.LazyFrame) -> CheckResult:
    """Figures that other tools state in their files follow from the rows that were read."""
    both = reported_figures.drop_nulls(("reported", "recomputed")).sort("source_file", "model", "figure").collect()
    off = (pl.col("reported") - pl.col("recomputed")).abs()
    # Tools round what they state to three decimals or more.
    wrong = both.filter(off > _ROUNDED * pl.max_horizontal(1.0, pl.col("reported").abs()))
    named = [
        f"{file}: {figure} of {model} is {reported:.4g} there and {recomputed:.4g} from its rows"
        for file, model, figure, reported, recomputed in wrong.select(
            "source_file", "model", "figure", "reported", "recomputed"
        ).iter_rows()
    ]
    message = "; ".join(named[:_MOST_NAMED]) or f"{counted(both.height, 'stated figure')} reproduced"
    return CheckResult(
        wrong.is_empty(), message, figures={"reproduced": both.height - wrong.height, "other": wrong.height}
    )


def unique_keys(attempts: pl.LazyFrame) -> CheckResult:
    """No two attempts share a key."""
    repeated = 0
    if not keys_increase_streamed(attempts):
        shared = attempts.group_by(TABLES["attempts"].key).len().filter(pl.col("len") > 1)
        repeated = int(shared.select(pl.len()).collect(engine="streaming").item())
    message = (
        f"{counted(repeated, 'key is', 'keys are')} used by more than one attempt"
        if repeated
        else "every key is unique"
    )
    return CheckResult(repeated == 0, message, error=True, figures={"duplicate_keys": repeated})
