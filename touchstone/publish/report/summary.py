"""The paragraph on top of the report: who is best, how sure that is, what changed, and what not to trust.

Every sentence states what a table says. Who is better is decided by the paired verdicts, which are adjusted for the
number of pairs, never by comparing two figures; where they leave it open, so does the sentence.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from touchstone.compare.verdicts import describe_shortage
from touchstone.publish.figures import number, percent
from touchstone.publish.report.caveats import caveats
from touchstone.publish.report.run import ReportedRun, Row
from touchstone.text import counted, visible

_MOST_TIERS = 3
_MOST_NAMES = 4
_OPPOSITE = {"better": "worse", "worse": "better"}
_OPEN = ("no evidence", "underpowered")


def summary(run: ReportedRun) -> list[str]:
    """The sentences of the paragraph, in order."""
    # Names and other foreign texts are in all of them.
    return [visible(sentence) for sentence in (*best(run), *change(run), *caveats(run))]


# Who is best, and how sure that is


def best(run: ReportedRun) -> Iterator[str]:
    """Per tier the model with the highest pass@k, and which others it is known to be better than."""
    rows = run.table("pass_at_k")
    if rows.is_empty():
        yield "There are no figures: no attempt was evaluated."
        return
    ranked = rows.filter(pl.col("k") == pl.col("k").min()).sort(
        "pass_at_k", "model", descending=[True, False], nulls_last=True
    )
    tiers = sorted(ranked["tier"].unique())
    for tier in tiers[:_MOST_TIERS]:
        at = f" at tier {tier}" if len(tiers) > 1 else ""
        yield from _best_of_tier(run, ranked.filter(pl.col("tier") == tier).to_dicts(), at)
    if len(tiers) > _MOST_TIERS:
        yield f"The leaderboard has {counted(len(tiers) - _MOST_TIERS, 'more tier')}."


def _best_of_tier(run: ReportedRun, ranked: list[Row], at: str) -> Iterator[str]:
    leader, others = ranked[0], [row["model"] for row in ranked[1:]]
    name, figure = leader["model"], f"pass@{leader['k']}"
    if leader["pass_at_k"] is None:
        needed = counted(leader["k"], "decided attempt")
        yield f"No model has a {figure}{at}: no problem has {needed}."
        return
    shown = f"{figure} {number(leader['pass_at_k'])} ({_how_sure(leader, run)})"
    if not others:
        yield f"{name} is the only model{at}: {shown}."
        return
    yield from _standing(run, leader, others, at, shown)


def _how_sure(row: Row, run: ReportedRun) -> str:
    problems = counted(row["eligible"], "problem")
    if (row["ci_method"] or "").endswith("-cluster"):
        problems += f" in {counted(row['ci_units'], 'cluster')}"
    if row["ci_low"] is None or row["ci_high"] is None:
        return f"no confidence interval, {problems}"
    return f"{run.confidence} CI {number(row['ci_low'])} to {number(row['ci_high'])}, {problems}"


def _standing(run: ReportedRun, leader: Row, others: Sequence[str], at: str, shown: str) -> Iterator[str]:
    """The leader of a tier against each of the other models, by the verdicts on the pairs."""
    pairs = _pairs_of(run, leader)
    verdict = {row["other"]: row["verdict"] for row in pairs}
    groups = {kind: [other for other in others if verdict.get(other) in kinds] for kind, kinds in _GROUPS.items()}
    beaten, undecided, name = groups["beaten"], [*groups["alike"], *groups["open"]], leader["model"]
    how = _adjusted(pairs)
    if len(beaten) == len(others):
        yield f"{name} is best{at}: {shown}; it is better than {_every(beaten)} ({how})."
        return
    known = [f"It is better than {_every_other(beaten, others)} ({how})"] if beaten else []
    if undecided and set(undecided) == set(others):
        none = "neither other model can" if len(others) == 2 else "no other model can"
        none = f"{_some(others)} cannot" if len(others) == 1 else none
        yield f"{name} has the highest {shown}{at}, but {none} be told apart from it ({how})."
    elif undecided and set(undecided) == set(others[: len(undecided)]):
        following = "the next model" if len(undecided) == 1 else f"the next {len(undecided):,} models"
        yield f"{name} has the highest {shown}{at}, but {following} cannot be told apart from it: {_some(undecided)}."
    elif undecided:
        yield f"{name} has the highest {shown}{at}, but cannot be told apart from {_some(undecided)}."
    else:
        yield f"{name} has the highest {shown}{at}."
    yield from (f"{sentence}." for sentence in known)
    yield from _reservations(run, groups, pairs, others)


_GROUPS = {"beaten": ("better",), "behind": ("worse",), "alike": ("no relevant difference",), "open": _OPEN}


def _pairs_of(run: ReportedRun, leader: Row) -> list[Row]:
    """The comparisons of a model with the others of its tier, with the verdict on it and the `other` model."""
    compared = run.scan("model_comparison").filter(
        pl.col("kind") == "models", pl.col("tier_a") == leader["tier"], pl.col("tier_b") == leader["tier"]
    )
    mine = compared.filter((pl.col("model_a") == leader["model"]) | (pl.col("model_b") == leader["model"]))
    rows = mine.drop("sentence").collect().to_dicts()
    for row in rows:
        is_b = row["model_b"] == leader["model"]
        row["other"] = row["model_a" if is_b else "model_b"]
        row["verdict"] = row["verdict"] if is_b else _OPPOSITE.get(row["verdict"], row["verdict"])
    return rows


def _adjusted(pairs: Sequence[Row]) -> str:
    return f"pass@1 paired by problem{_correction(pairs)}"


def _correction(pairs: Sequence[Row]) -> str:
    """What figures are adjusted for, after a comma; empty for a single pair."""
    count = max((row["pairs"] for row in pairs), default=0)
    if count <= 1:
        return ""
    rule = "Holm-adjusted for" if pairs[0]["correction"] == "holm" else "false discovery rate controlled over"
    return f", {rule} {count:,} pairs"


def _reservations(
    run: ReportedRun, groups: dict[str, list[str]], pairs: Sequence[Row], others: Sequence[str]
) -> Iterator[str]:
    """What the verdicts leave open, and how large a difference would have had to be."""
    if groups["behind"]:
        yield f"On the problems that both attempted, {_some(groups['behind'])} did better than it."
    if groups["alike"]:
        margin = f"{100 * float(run.settings.get('comparison.relevant', 0.05)):g}"
        interval = f"{percent(1 - run.alpha)} CI{_correction(pairs)}"
        yield f"Any difference from {_some(groups['alike'])} is smaller than {margin} points ({interval})."
    open_pairs = [row for row in pairs if row["verdict"] in _OPEN]
    short = [row for row in open_pairs if row["units_needed"] is not None]
    effects = [row["minimum_detectable_effect"] for row in open_pairs if row["minimum_detectable_effect"] is not None]
    if short:
        clustered = (short[0]["ci_method"] or "").endswith("-cluster")
        shortage = describe_shortage(
            short[0]["ci_units"],
            short[0]["units_needed"],
            pairs=short[0]["pairs"],
            alpha=run.alpha,
            clustered=clustered,
        )
        yield f"There is too little data: {shortage}."
    elif effects:
        yield f"These data would show a difference of {_points(min(effects), max(effects))} or more."
    uncompared = [other for other in others if other not in {row["other"] for row in pairs}]
    if uncompared:
        baseline = run.settings.get("comparison.baseline_model")
        why = f": all are compared with {baseline} instead" if baseline else ""
        yield f"It was not compared with {_some(uncompared)}{why}."


def _points(low: float, high: float) -> str:
    ends = [f"{100 * value:.1f}" for value in (low, high)]
    return f"{ends[0]} points" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} points, depending on the pair,"


def _every(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"{'both' if len(models) == 2 else f'all {len(models):,}'} others"


def _every_other(beaten: Sequence[str], others: Sequence[str]) -> str:
    return _some(beaten) if len(beaten) <= _MOST_NAMES else f"{len(beaten):,} of the {len(others):,} others"


def _some(names: Sequence[str], noun: str = "more") -> str:
    """Names, of which at most a few are spelled out."""
    shown = list(names[:_MOST_NAMES])
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest:,} {noun}"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


# What changed against the baseline


def change(run: ReportedRun) -> Iterator[str]:
    """What the gate found against the pinned baseline."""
    verdicts, counts = run.table("baseline_verdicts"), run.table("regression_counts")
    if verdicts.is_empty() and counts.is_empty():
        yield "No baseline is pinned, so nothing is known about change."
        return
    baseline = f" {verdicts['baseline'][0]}" if verdicts.height else ""
    found = [
        f"{_sides(rows, run)} {'is' if rows.height == 1 else 'are'} {verdict}"
        for verdict in ("worse", "better")
        if (rows := verdicts.filter(pl.col("verdict") == verdict)).height
    ]
    equal = (pl.col("wins") == 0) & (pl.col("losses") == 0) & (pl.col("ties") > 0)
    for words, rows in (
        ("equal on every problem", verdicts.filter(equal)),
        ("no relevant difference", verdicts.filter(~equal, pl.col("verdict") == "no relevant difference")),
        ("undecided", verdicts.filter(~equal, pl.col("verdict").is_in(_OPEN))),
    ):
        if rows.height:
            found.append(f"{words} for {rows.height:,} of {_models(verdicts.height, run)}")
    yield f"Against the baseline{baseline}: {'; '.join(found) or 'no model is in both'}."
    yield f"{_changed_cases(counts)}."


def _models(count: int, run: ReportedRun) -> str:
    return counted(count, "model and tier", "models and tiers") if run.has_tiers else counted(count, "model")


def _sides(rows: pl.DataFrame, run: ReportedRun) -> str:
    named = [
        f"{row['model']} {row['tier']}" if run.has_tiers else row["model"]
        for row in rows.sort("difference").iter_rows(named=True)
    ]
    by = [f"{value:.1f}" for value in sorted(100 * abs(value) for value in rows["difference"])]
    sizes = f" (by {by[0]} points)" if len(by) == 1 else f" (by {by[0]} to {by[-1]} points)"
    return _some(named) + sizes


def _changed_cases(counts: pl.DataFrame) -> str:
    total: dict[str, Any] = {name: counts[name].sum() or 0 for name in counts.columns if name not in ("model", "tier")}
    regressed = counted(total["regressions"], "case regressed", "cases regressed")
    chance = f" ({total['expected_by_chance']:,.1f} expected by chance alone)" if total["regressions"] else ""
    lost = f", {counted(total['lost'], 'case')} lost (no decided attempt now)" if total["lost"] else ""
    return f"{regressed}{chance}, {total['improvements']:,} improved{lost}"
