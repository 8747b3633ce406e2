"""What the audit of the problems found, in sentences for the report, the dashboard and the terminal."""

from collections.abc import Iterator

import polars as pl

from touchstone.text import counted, counted_of, some_of

_MOST_NAMED = 5


def problem_sentences(problem_audit: pl.DataFrame, audited_leaderboard: pl.DataFrame) -> list[str]:
    """How many problems still tell models apart, which are suspect, and what changes without those."""
    tiers = {
        rows["tier"][0]: list(_tier_sentences(rows)) for rows in problem_audit.partition_by("tier", maintain_order=True)
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


def _tier_sentences(audit: pl.DataFrame) -> Iterator[str]:
    numbers = dict(audit.group_by("verdict").len().iter_rows())
    unknown = numbers.get("not judged", 0)
    few = "fewer than six models attempted"
    if unknown < audit.height:
        yield _suspects(audit)
        apart = counted_of(audit["discrimination"].count(), audit.height, "problem")
        saturated, unsolved = (f"{numbers.get(verdict, 0):,}" for verdict in ("saturated", "unsolved"))
        yield f"{apart} still tell models apart; always solved: {saturated}, never solved: {unsolved}."
        if unknown:
            yield f"{counted(unknown, 'problem')} cannot be judged: {few} {'it' if unknown == 1 else 'them'}."
    else:
        yield f"The problems cannot be judged: {few} them."


def _suspects(audit: pl.DataFrame) -> str:
    found = audit.filter(pl.col("verdict") == "suspect").sort("p_value", "oid", nulls_last=True)["oid"].to_list()
    if not found:
        return "No problem is suspect."
    return f"{counted(len(found), 'problem is', 'problems are')} suspect: {some_of(found, _MOST_NAMED)}."
