"""The audit of a run in sentences: the attacks of a hostile reader, and the answers in the tables.

One line per question, and a sentence on the weakest point. No figure is computed here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from touchstone.publish.reported_run import ReportedRun
from touchstone.tables.presentation import ResultTable, name, number, prose
from touchstone.text import counted, counted_of, some_of, visible

_MOST_NAMED = 3
# How much a finding speaks against the figures: sides that cannot be compared, then verdicts that would fall, then
# points by which a figure would move. Below 1 is what nobody has looked at.
_NOT_COMPARABLE, _VERDICT_FALLS, _SHIFTED = 1000.0, 200.0, 1.0
_TESTS_OPEN, _PASSES_OPEN, _PROBLEMS_OPEN, _SETTINGS_OPEN = 0.4, 0.3, 0.2, 0.1


@dataclass(frozen=True)
class Finding:
    """A sentence on one part of a run; the larger the weight, the sooner it is attacked."""

    part: str
    says: str
    weight: float = 0.0


def findings(run: ReportedRun) -> list[Finding]:
    """The findings on a run, in the order of the page."""
    if run.outcome_counts.is_empty():
        return []
    parts = (_problems, _passes, _rulings, _undecided, _comparability, _tests, _contamination)
    return [Finding(found.part, visible(found.says), found.weight) for part in parts for found in part(run)]


def first_attack(found: list[Finding]) -> str:
    """A sentence on the first attack of a hostile reader.

    >>> first_attack([Finding("problems", "3 are suspect", 200.0), Finding("tests", "not measured", 0.1)])
    'A hostile reader would attack the problems first: 3 are suspect.'
    >>> first_attack([Finding("problems", "all fine"), Finding("tests", "not measured", 0.1)])
    'Nothing here moves a figure. A hostile reader would ask first about the tests: not measured.'
    >>> first_attack([Finding("problems", "all fine")])
    'Nothing here moves a figure.'
    """
    weakest = max(found, key=lambda each: each.weight, default=Finding("", ""))
    if weakest.weight >= _SHIFTED:
        return f"A hostile reader would attack the {weakest.part} first: {weakest.says}."
    asked = f" A hostile reader would ask first about the {weakest.part}: {weakest.says}." if weakest.weight else ""
    return f"Nothing here moves a figure.{asked}"


def audit_table(run: ReportedRun) -> ResultTable:
    """The findings as a table, with the sentence as its note; without rows if nothing was evaluated."""
    found = findings(run)
    rows = [{"part": each.part, "finding": each.says} for each in found]
    columns = [name("part"), prose("finding")]
    return ResultTable("audit-table", "What a hostile reader would look at", columns, rows, notes=[first_attack(found)])


# One part each


def _problems(run: ReportedRun) -> Iterator[Finding]:
    rows, board = run.scan("problem_audit"), run.table("audited_leaderboard")
    verdicts = set(rows.select(pl.col("verdict").unique()).collect(engine="streaming")["verdict"])
    if not verdicts:
        return
    says = " ".join(problem_sentences(rows, board)).removesuffix(".")
    if not board["suspects"].sum():
        yield Finding("problems", says, _PROBLEMS_OPEN if verdicts == {"not judged"} else 0.0)
        return
    shift = (board["pass_at_1"] - board["pass_at_1_without_suspects"]).abs().max()
    yield Finding("problems", says, _weight(int(board["changed_verdicts"].sum()), _points(shift)))


def _passes(run: ReportedRun) -> Iterator[Finding]:
    counts = run.table("pass_audit").select(pl.col("passes", "not_audited", "flagged", "worth_a_look").sum())
    if counts.is_empty():
        return
    passes, unread, flagged, look = (int(each or 0) for each in counts.row(0))
    if not passes:
        yield Finding("passes", "there is none")
    elif flagged:
        moved, points = _reading(run, "pass_at_k_unflagged")
        yield Finding("passes", f"{counted_of(flagged, passes, 'pass', 'passes')} flagged{moved}", _SHIFTED + points)
    elif unread == passes:
        yield Finding("passes", "none could be audited: the files have neither fixes nor transcripts", _PASSES_OPEN)
    else:
        seen = f"none of the {passes - unread:,} that could be audited is flagged"
        seen += f"; {look:,} worth a look" if look else ""
        yield Finding("passes", f"{seen}; {unread:,} could not be audited" if unread else seen)


def _rulings(run: ReportedRun) -> Iterator[Finding]:
    rows = run.table("rulings")
    applied = rows.filter("applied")
    if rows.is_empty():
        yield Finding("rulings", "nobody overruled a measured outcome")
        return
    people = counted(applied["by"].n_unique(), "person", "people")
    says = f"{counted(applied.height, 'ruling')} of {people} applied" if applied.height else "none is applied"
    left = rows.height - applied.height
    moved, points = _reading(run, "pass_at_k_measured") if applied.height else ("", 0.0)
    verdicts, fallen = _verdicts(run, "measured")
    says += f"; {left:,} not applied" if left else ""
    yield Finding("rulings", f"{says}{moved}{verdicts}", _weight(fallen, points))


def _undecided(run: ReportedRun) -> Iterator[Finding]:
    counts = run.outcome_counts
    total, undecided = int(counts["len"].sum()), int(counts.filter(pl.col("passed").is_null())["len"].sum())
    if not undecided:
        yield Finding("undecided attempts", "every attempt was decided")
        return
    rows = run.table("pass_at_k_readings").filter(pl.col("k") == pl.col("k").min())
    wide = rows.with_columns(width=pl.col("pass_at_k_high") - pl.col("pass_at_k_low")).sort("width", descending=True)
    says, points = counted_of(undecided, total, "attempt"), 0.0
    if wide.height and wide["width"][0] is not None:
        row = wide.row(0, named=True)
        low, high = number(row["pass_at_k_low"]), number(row["pass_at_k_high"])
        says += f"; pass@{row['k']} of {row['model']} is between {low} and {high}"
        points = _points(row["width"])
    verdicts, fallen = _verdicts(run, "undecided_favour_a", "undecided_favour_b")
    yield Finding("undecided attempts", f"{says}{verdicts}", _weight(fallen, points))


def _comparability(run: ReportedRun) -> Iterator[Finding]:
    rows = run.table("comparability")
    if rows.is_empty():
        return
    differ = rows.filter(pl.col("agreement") == "different")
    unknown = rows.filter(pl.col("agreement") == "unknown")["dimension"].unique(maintain_order=True).to_list()
    open_ = f"; not stated: {', '.join(unknown)}" if unknown else ""
    if differ.is_empty():
        yield Finding("comparability", f"nothing is known to differ{open_}", _SETTINGS_OPEN if unknown else 0.0)
        return
    named = [
        f"{dimension} ({value_a} / {value_b}{', against the baseline' if kind == 'baseline' else ''})"
        for kind, dimension, value_a, value_b in differ.select("kind", "dimension", "value_a", "value_b").iter_rows()
    ]
    must = differ.filter("required").height
    yield Finding(
        "comparability", f"different: {some_of(named, _MOST_NAMED)}{open_}", _NOT_COMPARABLE if must else _SHIFTED
    )


def _tests(run: ReportedRun) -> Iterator[Finding]:
    rows = run.table("test_strength")
    judged = rows.filter(pl.col("kill_rate").is_not_null())
    if judged.is_empty():
        validated = run.outcome_counts.filter(pl.col("validator") != "recorded").height
        how = "set validation.mutants to measure it" if validated else "the outcomes were recorded elsewhere"
        yield Finding("tests", f"whether they would notice a wrong fix is not measured; {how}", _TESTS_OPEN)
        return
    killed, survived = judged.select(pl.col("killed", "survived").sum()).row(0)
    weak = judged.filter("weak").sort("kill_rate", "oid")["oid"].to_list()
    says = f"they reject {killed:,} of {counted(killed + survived, 'mutant')} of the reference fixes"
    if weak:
        says += f"; weak for {counted_of(len(weak), judged.height, 'problem')}: {some_of(weak, _MOST_NAMED)}"
    yield Finding("tests", says, _SHIFTED + len(weak) if weak else 0.0)


def _contamination(run: ReportedRun) -> Iterator[Finding]:
    rows = run.table("contamination")
    higher = rows.filter(pl.col("finding") == "higher before").sort("difference", descending=True)
    if rows.is_empty():
        return
    if higher.is_empty():
        yield Finding("cutoff", "no model is shown to be better on problems from before its cutoff")
        return
    first = higher.row(0, named=True)
    says = f"{counted(higher['model'].n_unique(), 'model is', 'models are')} better on problems from before the cutoff"
    yield Finding(
        "cutoff",
        f"{says}, {first['model']} by {_points(first['difference']):.1f} points",
        _SHIFTED + _points(first["difference"]),
    )


def _reading(run: ReportedRun, reading: str) -> tuple[str, float]:
    """The largest change of pass@k, of the smallest k, in another reading: as words, and in points."""
    rows = run.table("pass_at_k_readings").filter(pl.col("k") == pl.col("k").min())
    moved = rows.with_columns(change=(pl.col(reading) - pl.col("pass_at_k")).abs()).sort("change", descending=True)
    if moved.is_empty() or not moved["change"][0]:
        return "; no figure changes", 0.0
    row = moved.row(0, named=True)
    words = f"; pass@{row['k']} of {row['model']} is {number(row['pass_at_k'])}, without them {number(row[reading])}"
    return words, _points(row["change"])


def _verdicts(run: ReportedRun, *readings: str) -> tuple[str, int]:
    """How many verdicts on models do not hold in these readings: as words, and as a number."""
    rows = run.table("verdict_readings").filter(pl.col("reading").is_in(readings), ~pl.col("holds"))
    fallen = rows.select("kind", "model_a", "tier_a", "model_b", "tier_b").unique().height
    return (f"; {counted(fallen, 'verdict')} on models would not hold" if fallen else ""), fallen


def _weight(fallen: int, points: float) -> float:
    return _VERDICT_FALLS + fallen if fallen else _SHIFTED + points if points else 0.0


def _points(share: object) -> float:
    return 100 * float(share) if isinstance(share, float) else 0.0


# Problems, for the report and the dashboard too


_MOST_SUSPECTS = 5


def problem_sentences(problem_audit: pl.LazyFrame, audited_leaderboard: pl.DataFrame) -> list[str]:
    """How many problems still tell models apart, which are suspect, and what changes without those."""
    suspects = problem_audit.filter(pl.col("verdict") == "suspect").sort("p_value", "oid", nulls_last=True)
    named = suspects.select("tier", "oid").collect()
    counts = problem_audit.group_by("tier", "verdict").agg(problems=pl.len(), apart=pl.col("discrimination").count())
    by_tier = counts.collect(engine="streaming").partition_by("tier", as_dict=True)
    tiers = {
        tier: list(_tier_sentences(by_tier[tier,], named.filter(tier=tier)["oid"].to_list()))
        for (tier,) in sorted(by_tier)
    }
    if len(set(map(tuple, tiers.values()))) == 1:
        said = next(iter(tiers.values()))
    else:
        said = [f"Tier {tier}: {sentence}" for tier, sentences in tiers.items() for sentence in sentences]
    if audited_leaderboard["suspects"].sum():
        ranks = pl.col("rank").ne_missing(pl.col("rank_without_suspects"))
        reranked = counted(audited_leaderboard.filter(ranks).height, "model changes", "models change")
        # A pair is counted by both of its sides.
        verdicts = int(audited_leaderboard["changed_verdicts"].sum()) // 2
        changed = counted(verdicts, "verdict between models changes", "verdicts between models change")
        said.append(f"Without the suspects, {reranked} rank and {changed}.")
    return said


def _tier_sentences(counts: pl.DataFrame, suspects: Sequence[str]) -> Iterator[str]:
    numbers = dict(counts.select("verdict", "problems").iter_rows())
    total, unknown = sum(numbers.values()), numbers.get("not judged", 0)
    few = "fewer than six models attempted"
    if unknown < total:
        yield _named_suspects(suspects)
        apart = counted_of(int(counts["apart"].sum()), total, "problem")
        saturated, unsolved = (f"{numbers.get(verdict, 0):,}" for verdict in ("saturated", "unsolved"))
        yield f"{apart} still tell models apart; always solved: {saturated}, never solved: {unsolved}."
        if unknown:
            yield f"{counted(unknown, 'problem')} cannot be judged: {few} {'it' if unknown == 1 else 'them'}."
    else:
        yield f"The problems cannot be judged: {few} them."


def _named_suspects(found: Sequence[str]) -> str:
    if not found:
        return "No problem is suspect."
    return f"{counted(len(found), 'problem is', 'problems are')} suspect: {some_of(found, _MOST_SUSPECTS)}."
