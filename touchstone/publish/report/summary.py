"""The two paragraphs on top of the report: the result in plain words, then what it rests on.

The first is for somebody who decides: who is best, how sure that is, and what got worse. The second has the statistics:
figures, tests, and what not to trust. Every sentence states what a table says. Who is better is decided by the paired
verdicts, which are adjusted for the number of pairs, never by comparing two figures; where they leave it open, so does
the sentence.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from touchstone.comparison.comparability import agreements_in, exploratory_reasons
from touchstone.comparison.registered_plan import PlanItem, plan_sentence
from touchstone.comparison.verdicts import describe_shortage
from touchstone.publish.reported_run import ReportedRun, Row
from touchstone.publish.result_tables import HALF_A_POINT, READING_WORDS
from touchstone.tables.presentation import number, percent
from touchstone.text import counted, counted_of, some_of, visible
from touchstone.vocabulary import OPEN_VERDICTS, OPPOSITE_VERDICTS, STATIC_AGREEMENT, STATIC_FIDELITIES

_MOST_TIERS = 3
_MOST_NAMES = 4
_MOST_NAMED = 3
_PAIR = ["kind", "model_a", "tier_a", "model_b", "tier_b"]
# Below this many independent units, a textbook calls a sample small.
_FEW_UNITS = 30
_WHOLE = ("full", "recorded")


def headline(run: ReportedRun) -> list[str]:
    """The sentences of the first paragraph, in order."""
    changes = change(run) if has_baseline(run) else ()
    first = (*winner(run), *_rests_on(run), *exploratory(run), *planned(run))
    return [visible(sentence) for sentence in (*first, *changes, *new_changes(run), *failed_checks(run))]


def exploratory(run: ReportedRun) -> Iterator[str]:
    """A sentence on each comparison whose sides differ in what is required."""
    for kind, what in (("models", "Comparing these models"), ("baseline", "The comparison with the baseline")):
        reasons = exploratory_reasons(agreements_in(run.scan("comparability"), kind))
        if reasons:
            yield f"{what} is exploratory, because the sides differ ({'; '.join(reasons)})."


def planned(run: ReportedRun) -> Iterator[str]:
    """Whether the run is the one that was planned, if there is a plan."""
    items = [PlanItem(**row) for row in run.table("registered_plan").to_dicts()]
    if items:
        yield f"This is {plan_sentence(items)}."


def summary(run: ReportedRun) -> list[str]:
    """The sentences of the second paragraph, in order."""
    # Names and other foreign texts are in all of them.
    unknown = () if has_baseline(run) else ("No baseline is pinned, so nothing is known about change.",)
    return [visible(sentence) for sentence in (*best(run), *unknown, *caveats(run))]


_MOST_MODES = 5


def why_they_fail(run: ReportedRun) -> list[str]:
    """A line per failure mode, the most common first, then one on the others; one line if no reason is known."""
    counts = run.outcome_counts
    failed = int(counts.filter(~pl.col("passed"))["len"].sum())
    modes = run.table("failure_modes").filter(pl.col("attempts") > 0)
    if modes.is_empty():
        unknown = f"{counted(failed, 'failed attempt has', 'failed attempts have')} neither diagnostics nor an error"
        return [f"Why they fail is not known: {unknown}."] if failed else []
    lines = []
    for row in modes.head(_MOST_MODES).iter_rows(named=True):
        change = f", {row['mode_change']} since the baseline" if row["mode_change"] in ("new", "grown") else ""
        where = f"{counted(row['problems'], 'problem')}, {counted(row['models'], 'model')}{change}"
        lines.append(f"{counted_of(row['attempts'], failed, 'failed attempt')} ({where}): {row['fingerprint']}")
    rest, known = modes[_MOST_MODES:], int(modes["attempts"].sum())
    others = [f"{counted(rest.height, 'other way', 'other ways')}: {rest['attempts'].sum():,}"] if rest.height else []
    others += [f"no reason known: {failed - known:,}"] if failed > known else []
    return [visible(line) for line in (*lines, *(["; ".join(others)] if others else []))]


# The result in plain words


def winner(run: ReportedRun) -> Iterator[str]:
    """The best model and tier by pass@k: how many problems of a hundred it repairs, and whom it is ahead of."""
    rows = run.table("pass_at_k")
    if rows.is_empty():
        yield "There are no figures: no attempt was evaluated."
        return
    first_k = rows.filter(pl.col("k") == pl.col("k").min()).to_dicts()
    by_side = {(row["model"], row["tier"]): row for row in first_k}
    leader, *_ = ranked = [by_side[side] for side in run.sides]
    k, value = leader["k"], leader["pass_at_k"]
    tries = "at the first try" if k == 1 else f"within {k:,} tries"
    if value is None:
        yield f"There is no result yet: no problem has {counted(k, 'decided attempt')}."
        return
    tied = [row for row in ranked if row["pass_at_k"] == value]
    if value == 0:
        who = f"{_side(run, leader)} repairs no problem" if len(ranked) == 1 else "No model repairs any problem"
        yield f"{who} {tries}{_probably(tied)}."
    elif len(tied) > 1:
        shared = _some([_side(run, row) for row in tied])
        yield f"{shared} share the first place: each repairs {_of_hundred(value)} {tries}{_probably(tied)}."
    else:
        others = [row["model"] for row in ranked[1:] if row["tier"] == leader["tier"]]
        ahead, standing = _ahead(run, leader, others)
        yield f"{_side(run, leader)} repairs {_of_hundred(value)} {tries}{_probably(tied)}{ahead}."
        yield from standing
    yield _measured(leader)


def _side(run: ReportedRun, row: Row) -> str:
    return f"{row['model']} (tier {row['tier']})" if run.has_tiers else str(row["model"])


def _of_hundred(rate: float) -> str:
    """A share of the problems in words.

    >>> _of_hundred(0.7795), _of_hundred(0.996), _of_hundred(0.004), _of_hundred(1.0)
    ('78 of 100 problems', 'more than 99 of 100 problems', 'fewer than 1 of 100 problems', 'every problem')
    """
    return "every problem" if rate == 1 else f"{_hundredths(rate)} of 100 problems"


def _hundredths(rate: float) -> str:
    """A share in hundredths; only exactly none is 0 and only all is 100."""
    if 0 < rate < 0.005:
        return "fewer than 1"
    if 0.995 <= rate < 1:
        return "more than 99"
    return f"{100 * rate:.0f}"


def _probably(rows: Sequence[Row]) -> str:
    """The confidence interval in words, if it is the same for all rows."""
    ends = {(row["ci_low"], row["ci_high"]) for row in rows}
    low, high = ends.pop()
    if ends or low is None or high is None:
        return ""
    if rows[0]["pass_at_k"] in (0, 1):
        end, bound = (low, "at least ") if rows[0]["pass_at_k"] else (high, "at most ")
        shown = _hundredths(end)
        return f" (probably {bound if shown.isdigit() else ''}{shown} of 100)"
    first, last = (f"{100 * end:.0f}" for end in (low, high))
    return f" (probably {first} to {last})" if first != last else " (known to within one of 100)"


def _ahead(run: ReportedRun, leader: Row, others: Sequence[str]) -> tuple[str, list[str]]:
    """Whom the leader is ahead of, by the verdicts: words that end the first sentence, and another one."""
    if not others:
        return "", [] if len(run.sides) > 1 else ["It is the only model."]
    groups = _groups(_pairs_of(run, leader), others)
    where = " at this tier" if run.has_tiers else ""
    if len(groups["beaten"]) == len(others):
        return f", clearly ahead of {_every(others)}{where}", []
    if len(groups["open"]) == len(others):
        rivals = others[0] if len(others) == 1 else "either other model" if len(others) == 2 else "any other model"
        return f", but is not clearly ahead of {rivals}{where}: no winner is certain", []
    words = {
        "beaten": "clearly ahead of {}",
        "alike": "practically level with {}",
        "open": "not clearly ahead of {}",
        "behind": "behind {} on the problems that both attempted",
        "uncompared": "not compared with {}",
    }
    known = [word.format(_some(groups[kind])) for kind, word in words.items() if groups[kind]]
    return "", [f"{'At this tier, it' if where else 'It'} is {'; '.join(known)}."]


def _groups(pairs: Sequence[Row], others: Sequence[str]) -> dict[str, list[str]]:
    """The other models by the verdict on the leader, in the order of the leaderboard."""
    verdict = {row["other"]: row["verdict"] for row in pairs}
    groups = {kind: [other for other in others if verdict.get(other) in kinds] for kind, kinds in _GROUPS.items()}
    return groups | {"uncompared": [other for other in others if other not in verdict]}


def _measured(leader: Row) -> str:
    """How many problems the figure rests on."""
    used, total = leader["eligible"], leader["problems"]
    if used == total:
        return f"This was measured on {counted(total, 'problem')}."
    without = "no decided attempt" if leader["k"] == 1 else f"fewer than {leader['k']:,} decided attempts"
    rest = "the other has" if total - used == 1 else f"the other {total - used:,} have"
    return f"This was measured on {counted_of(used, total, 'problem')}; {rest} {without}."


# Who is best, and how sure that is


def best(run: ReportedRun) -> Iterator[str]:
    """Per tier, the best first: the model with the highest pass@k, and which others it is known to be better than."""
    rows = run.table("pass_at_k")
    if rows.is_empty():
        yield "There are no figures: no attempt was evaluated."
        return
    ranked = rows.filter(pl.col("k") == pl.col("k").min()).sort(
        "pass_at_k", "model", descending=[True, False], nulls_last=True
    )
    tiers = list(dict.fromkeys(tier for _, tier in run.sides))
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
    if row["ci_method"] and row["ci_units"] < row["eligible"]:
        problems += f" in {counted(row['ci_units'], 'cluster')}"
    if row["ci_low"] is None or row["ci_high"] is None:
        return f"no confidence interval, {problems}"
    return f"{run.confidence} CI {number(row['ci_low'])} to {number(row['ci_high'])}, {problems}"


def _standing(run: ReportedRun, leader: Row, others: Sequence[str], at: str, shown: str) -> Iterator[str]:
    """The leader of a tier against each of the other models, by the verdicts on the pairs."""
    pairs = _pairs_of(run, leader)
    groups = _groups(pairs, others)
    beaten, undecided, name = groups["beaten"], [*groups["alike"], *groups["open"]], leader["model"]
    how = f"pass@1 paired by problem{_correction(pairs)}"
    if len(beaten) == len(others):
        yield f"{name} is best{at}: {shown}; it is better than {_every(beaten)} ({how})."
        return
    known = [f"It is better than {_every_other(beaten, others)} ({how})"] if beaten else []
    if undecided and set(undecided) == set(others):
        none = "neither other model can" if len(others) == 2 else "no other model can"
        none = f"{_some(others)} cannot" if len(others) == 1 else none
        yield f"{name} has the highest pass rate: {shown}{at}, but {none} be told apart from it ({how})."
    elif undecided and set(undecided) == set(others[: len(undecided)]):
        following = "the next model" if len(undecided) == 1 else f"the next {len(undecided):,} models"
        alike = f"{following} cannot be told apart from it: {_some(undecided)}"
        yield f"{name} has the highest pass rate: {shown}{at}, but {alike}."
    elif undecided:
        yield f"{name} has the highest pass rate: {shown}{at}, but cannot be told apart from {_some(undecided)}."
    else:
        yield f"{name} has the highest pass rate: {shown}{at}."
    yield from (f"{sentence}." for sentence in known)
    yield from _reservations(run, groups, pairs)


_GROUPS = {"beaten": ("better",), "behind": ("worse",), "alike": ("no relevant difference",), "open": OPEN_VERDICTS}


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
        row["verdict"] = row["verdict"] if is_b else OPPOSITE_VERDICTS.get(row["verdict"], row["verdict"])
    return rows


def _correction(pairs: Sequence[Row]) -> str:
    """The correction of the figures, after a comma; empty for a single pair."""
    count = max((row["pairs"] for row in pairs), default=0)
    if count <= 1:
        return ""
    rule = "Holm-adjusted for" if pairs[0]["correction"] == "holm" else "false discovery rate controlled over"
    return f", {rule} {count:,} pairs"


def _reservations(run: ReportedRun, groups: dict[str, list[str]], pairs: Sequence[Row]) -> Iterator[str]:
    """Questions that the verdicts leave open, and the difference that these data would find."""
    if groups["behind"]:
        yield f"On the problems that both attempted, {_some(groups['behind'])} did better than it."
    if groups["alike"]:
        margin = f"{100 * float(run.settings.get('comparison.relevant', 0.05)):g}"
        interval = f"{percent(1 - run.alpha)} CI{_correction(pairs)}"
        yield f"Any difference from {_some(groups['alike'])} is smaller than {margin} points ({interval})."
    open_pairs = [row for row in pairs if row["verdict"] in OPEN_VERDICTS]
    short = [row for row in open_pairs if row["units_needed"] is not None]
    effects, on_few = (
        [row[name] for row in open_pairs if row.get(name) is not None]
        for name in ("minimum_detectable_effect", "detectable_on_few")
    )
    if short:
        clustered = short[0]["ci_units"] < short[0]["problems"]
        shortage = describe_shortage(
            short[0]["ci_units"],
            short[0]["units_needed"],
            pairs=short[0]["pairs"],
            alpha=run.alpha,
            clustered=clustered,
        )
        yield f"There is too little data: {shortage}."
    elif effects:
        power = run.settings.get("comparison.power", 0.8)
        often = "four times in five" if power == 0.8 else f"with probability {power:g}"
        few = f"; on few problems, one of {_points(on_few)}" if on_few else "; less often if it sits on few problems"
        yield f"These data would find a difference of {_points(effects)} {often} if it is spread evenly{few}."
    if groups["uncompared"]:
        baseline = run.settings.get("comparison.baseline_model")
        why = f": all are compared with {baseline} instead" if baseline else ""
        yield f"It was not compared with {_some(groups['uncompared'])}{why}."


def _points(effects: Sequence[float]) -> str:
    ends = [f"{100 * value:.1f}" for value in (min(effects), max(effects))]
    return f"{ends[0]} points" if ends[0] == ends[1] else f"{ends[0]} to {ends[1]} points (by pair)"


def _every(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else f"{'both' if len(models) == 2 else f'all {len(models):,}'} others"


def _every_other(beaten: Sequence[str], others: Sequence[str]) -> str:
    return _some(beaten) if len(beaten) <= _MOST_NAMES else f"{len(beaten):,} of the {len(others):,} others"


def _some(names: Sequence[str]) -> str:
    """Names, of which at most a few are spelled out."""
    shown = list(names[:_MOST_NAMES])
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest:,} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


# Changes against the baseline


def has_baseline(run: ReportedRun) -> bool:
    """Whether the run was compared with a pinned baseline."""
    return bool(run.table("baseline_verdicts").height or run.table("regression_counts").height)


def change(run: ReportedRun) -> Iterator[str]:
    """The verdicts and changed cases against the pinned baseline."""
    verdicts, counts = run.table("baseline_verdicts"), run.table("regression_counts")
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
        ("undecided", verdicts.filter(~equal, pl.col("verdict").is_in(OPEN_VERDICTS))),
    ):
        if rows.height:
            found.append(f"{words} for {rows.height:,} of {_models(verdicts.height, run)}")
    yield f"Against the baseline{baseline}: {'; '.join(found) or 'no model is in both'}."
    yield f"{_changed_cases(counts)}."


def new_changes(run: ReportedRun) -> Iterator[str]:
    """The changes of level over all snapshots that this run is the first to show, one sentence per model and tier."""
    latest = run.snapshot.id if run.snapshot is not None and run.table("change_points").height else ""
    rows = run.table("change_points").filter(pl.col("seen_in") == latest).sort("model", "tier", "p_value")
    for row in rows.unique(["model", "tier"], maintain_order=True).iter_rows(named=True):
        who = run.side_name(row["model"], row["tier"])
        yield f"{who}: {row['sentence']}, since {row['made_at'][:10]}; changed there: {row['changed']}."


def _models(count: int, run: ReportedRun) -> str:
    return counted(count, "model and tier", "models and tiers") if run.has_tiers else counted(count, "model")


def _sides(rows: pl.DataFrame, run: ReportedRun) -> str:
    named = [run.side_name(*side) for side in rows.sort("difference").select("model", "tier").iter_rows()]
    if "problems" in rows["decided_by"]:
        changed = "fell" if rows["verdict"][0] == "worse" else "rose"
        return f"{_some(named)} ({counted(int(rows[changed].sum()), 'problem')} {changed})"
    by = [f"{value:.1f}" for value in sorted(100 * abs(value) for value in rows["difference"])]
    sizes = f" (by {by[0]} points)" if len(by) == 1 else f" (by {by[0]} to {by[-1]} points)"
    return _some(named) + sizes


def _changed_cases(counts: pl.DataFrame) -> str:
    total: dict[str, Any] = {name: counts[name].sum() or 0 for name in counts.columns if name not in ("model", "tier")}
    regressed = counted(total["regressions"], "case regressed", "cases regressed")
    chance = f" ({total['expected_by_chance']:,.1f} expected by chance alone)" if total["regressions"] else ""
    lost = f", {counted(total['lost'], 'case')} lost (no decided attempt now)" if total["lost"] else ""
    return f"{regressed}{chance}, {total['improvements']:,} improved{lost}"


# Reservations: every one that the tables and checks give reason for, one sentence each


def caveats(run: ReportedRun) -> list[str]:
    """The sentences; if there is no reservation, one that says what that rests on."""
    found = [
        sentence
        for of in (
            _warnings,
            _outcomes,
            _bounds,
            rulings,
            _dependent,
            _small,
            _intervals,
            _refused,
            _flaky,
            _suspects,
            _seen_before,
            _costs,
            _fidelity,
            _controls,
        )
        for sentence in of(run)
    ]
    well = run.table("pass_at_k").height and all(check.passed for check in run.checks)
    return found or ([_all_well(run)] if well else [])


def _suspects(run: ReportedRun) -> Iterator[str]:
    suspect = run.scan("problem_audit").filter(pl.col("verdict") == "suspect")
    audit = suspect.sort("p_value", "oid", nulls_last=True).collect()
    if audit.height:
        named = some_of(audit["oid"].unique(maintain_order=True).to_list(), _MOST_NAMED)
        yield f"{counted(audit['oid'].n_unique(), 'problem is', 'problems are')} suspect: {named}."


def _all_well(run: ReportedRun) -> str:
    passed = f"{counted_of(len(run.checks), len(run.checks), 'check')} passed, " if run.checks else ""
    return f"Nothing speaks against these figures: {passed}no row was refused, and every attempt was decided."


def failed_checks(run: ReportedRun) -> Iterator[str]:
    """A sentence on the checks that failed the run."""
    yield from _unpassed(run, "failed", ": read why before you trust the figures", error=True)


def _warnings(run: ReportedRun) -> Iterator[str]:
    yield from _unpassed(run, "warned", "", error=False)


def _unpassed(run: ReportedRun, words: str, advice: str, *, error: bool) -> Iterator[str]:
    names = [check.name for check in run.checks if not check.passed and check.error == error]
    if names:
        yield f"{counted(len(names), 'check')} {words} ({some_of(names, _MOST_NAMED)}){advice}."


def _outcomes(run: ReportedRun) -> Iterator[str]:
    counts = run.outcome_counts
    total, undecided = int(counts["len"].sum()), int(counts.filter(pl.col("passed").is_null())["len"].sum())
    if undecided:
        share = f"{100 * undecided / total:.1f}%" if undecided / total >= 0.0005 else "less than 0.1%"
        yield (
            f"{counted_of(undecided, total, 'attempt')} ({share}) could not be decided and "
            f"{'counts' if undecided == 1 else 'count'} neither as passed nor as failed."
        )
    rows = run.table("pass_at_k")
    short = rows.filter(pl.col("attempted") < pl.col("problems")).select("model", "tier").unique().height
    if short:
        whole = run.table("pass_at_k").select("model", "tier").unique().height
        noun = "model and tier has" if run.has_tiers else "model has"
        plural = "models and tiers have" if run.has_tiers else "models have"
        yield f"{short:,} of {counted(whole, noun, plural)} problems without a decided attempt, which are left out."


def _bounds(run: ReportedRun) -> Iterator[str]:
    rows = run.table("pass_at_k_readings").filter(pl.col("k") == pl.col("k").min())
    rows = rows.with_columns(width=pl.col("pass_at_k_high") - pl.col("pass_at_k_low"))
    widest = rows.filter(pl.col("width") > HALF_A_POINT).sort("width", "model", "tier", descending=[True, False, False])
    if widest.height:
        row = widest.row(0, named=True)
        ends = f"{number(row['pass_at_k_low'])} (all failed) and {number(row['pass_at_k_high'])} (all passed)"
        others = counted(widest.height - 1, "more row")
        more = f"; {others} of the leaderboard could move by more than half a point" if widest.height > 1 else ""
        yield f"Undecided attempts leave pass@{row['k']} of {_side(run, row)} between {ends}{more}."


def rulings(run: ReportedRun) -> Iterator[str]:
    """How many rulings count, and what they change most."""
    rows = run.table("rulings")
    if rows.is_empty():
        return
    applied, left_out = rows.filter("applied").height, rows.filter(~pl.col("applied")).height
    words = f"{counted(applied, 'ruling of a person counts', 'rulings of people count')} in place of what was measured"
    words += f", {left_out:,} {'is' if left_out == 1 else 'are'} not applied" if left_out else ""
    figures = run.table("pass_at_k_readings").filter(pl.col("k") == pl.col("k").min())
    changed = figures.filter(pl.col("pass_at_k").ne_missing(pl.col("pass_at_k_measured")))
    most = changed.sort((pl.col("pass_at_k") - pl.col("pass_at_k_measured")).abs(), descending=True, nulls_last=True)
    for row in most.head(1).iter_rows(named=True):
        with_them, without = number(row["pass_at_k"]), number(row["pass_at_k_measured"])
        them = "it" if applied == 1 else "them"
        words += f"; pass@{row['k']} of {_side(run, row)} is {with_them} with {them} and {without} without"
    yield f"{words}."


def _dependent(run: ReportedRun) -> Iterator[str]:
    """The verdicts that do not hold if outcomes are read otherwise."""
    rows = run.table("verdict_readings")
    for what in dict.fromkeys(READING_WORDS.values()):
        read = rows.filter(pl.col("reading").is_in([name for name, words in READING_WORDS.items() if words == what]))
        pairs = read.group_by(_PAIR).agg(pl.col("holds").all()).sort(_PAIR)
        open_pairs = pairs.filter(~pl.col("holds"))
        if read.is_empty():
            continue
        if open_pairs.is_empty():
            yield f"No verdict depends on {what}."
            continue
        named = [
            f"{_side(run, {'model': b, 'tier': tier_b})} against {_side(run, {'model': a, 'tier': tier_a})}"
            for _, a, tier_a, b, tier_b in open_pairs.select(_PAIR).iter_rows()
        ]
        verb = "depends" if open_pairs.height == 1 else "depend"
        yield (
            f"{counted_of(open_pairs.height, pairs.height, 'verdict')} {verb} on {what}: {some_of(named, _MOST_NAMED)}."
        )


def _rests_on(run: ReportedRun) -> Iterator[str]:
    """Whether a verdict on the best model does not hold if outcomes are read otherwise."""
    if not run.sides:
        return
    leader, _ = run.sides[0]
    own = (pl.col("model_a") == leader) | (pl.col("model_b") == leader)
    broken = run.table("verdict_readings").filter(own, ~pl.col("holds"))["reading"].unique().sort()
    what = dict.fromkeys(READING_WORDS.get(reading, reading) for reading in broken)
    if what:
        yield f"How {leader} compares with others depends on {' and '.join(what)}; see below."


def _small(run: ReportedRun) -> Iterator[str]:
    rows = run.table("pass_at_k").filter(pl.col("pass_at_k").is_not_null())
    if rows.height and (units := int(rows["ci_units"].min())) < _FEW_UNITS:  # type: ignore[arg-type]
        yield (
            f"The sample is small: some figures rest on {counted(units, 'independent unit')} "
            "(problems, each cluster counted once)."
        )


def _intervals(run: ReportedRun) -> Iterator[str]:
    rows = run.table("pass_at_k").filter(pl.col("pass_at_k").is_not_null())
    without = rows.filter(pl.col("ci_low").is_null() | pl.col("ci_high").is_null()).height
    if without:
        yield f"{counted_of(without, rows.height, 'pass@k figure')} {_has(without)} no confidence interval."


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _refused(run: ReportedRun) -> Iterator[str]:
    refused = run.scan("quarantine").select(pl.len()).collect().item()
    if refused:
        yield f"{counted(refused, 'row was', 'rows were')} refused and {'is' if refused == 1 else 'are'} not counted."
    unread = run.table("sources").filter(pl.col("status") == "refused")["source_file"].unique().sort().to_list()
    if unread:
        yield f"{counted(len(unread), 'file')} could not be read: {some_of(unread, _MOST_NAMED)}."


def _flaky(run: ReportedRun) -> Iterator[str]:
    flaky = run.scan("validator_noise").filter(pl.col("flaky"), pl.col("test").is_not_null())
    tests = flaky.select("oid", "test").unique().collect()
    if tests.height:
        where = counted(tests["oid"].n_unique(), "problem")
        yield f"{counted(tests.height, 'test')} of {where} {'is' if tests.height == 1 else 'are'} flaky."


def _seen_before(run: ReportedRun) -> Iterator[str]:
    rows = run.table("contamination").filter(pl.col("finding") == "higher before")
    if rows.height:
        models = rows["model"].unique().sort().to_list()
        yield (
            f"{counted(len(models), 'model does', 'models do')} significantly better on problems from before the "
            f"training cutoff: {some_of(models, _MOST_NAMED)}."
        )


def _costs(run: ReportedRun) -> Iterator[str]:
    rows = run.table("model_statistics")
    unpriced = rows.filter(pl.col("unpriced_attempts") > 0)["model"].n_unique()
    if unpriced:
        yield f"Costs are unknown for {unpriced:,} of {counted(rows['model'].n_unique(), 'model')}."


def _fidelity(run: ReportedRun) -> Iterator[str]:
    counts = run.outcome_counts.filter(pl.col("passed").is_not_null())
    total = int(counts["len"].sum())
    if not total:
        return
    recorded = int(counts.filter(pl.col("validator") == "recorded")["len"].sum())
    if recorded == total:
        yield "All outcomes are as the input files state them; nothing was validated here."
    elif recorded:
        yield f"{counted_of(recorded, total, 'outcome')} {'is' if recorded == 1 else 'are'} as the input files state."
    partial = counts.filter(~pl.col("fidelity").is_in(_WHOLE))
    if partial.height:
        kinds = ", ".join(sorted(partial["fidelity"].unique()))
        some = int(partial["len"].sum())
        yield f"{counted_of(some, total, 'outcome')} {'comes' if some == 1 else 'come'} from a partial check ({kinds})."
    if partial["fidelity"].is_in(STATIC_FIDELITIES).any():
        yield f"{STATIC_AGREEMENT[0].upper()}{STATIC_AGREEMENT[1:]}."


def _controls(run: ReportedRun) -> Iterator[str]:
    """Passes of Python fixes whose tests were not, or not all, run again with their expectations made false."""
    if run.outcome_counts.filter(pl.col("passed"), validator="python").is_empty():
        return
    passes = run.scan("outcomes").filter(pl.col("passed"), validator="python")
    tests, controlled = pl.col("tests_passed"), pl.col("controlled_tests")
    counts = passes.select(pl.len(), off=controlled.is_null().sum(), some=(controlled < tests).sum()).collect()
    total, off, some = counts.row(0)
    if off:
        yield f"{counted_of(off, total, 'pass', 'passes')} of Python fixes {_has(off)} no negative control."
    if some:
        yield f"{counted_of(some, total, 'pass', 'passes')} of Python fixes rest on a test without a negative control."
