"""Factors of an attempt: worked by hand, through the command line, and coverage in simulation."""

import math

import numpy as np
import polars as pl
import pytest

from tests.conftest import Command, Folder
from tests.publish.dashboard.client import Client
from touchstone.comparison.factor_effects import difference_of_differences, factor_effects
from touchstone.comparison.pairs import ComparisonSettings, compare_pairs
from touchstone.config import IntervalSettings
from touchstone.inference.quantiles import t_critical
from touchstone.metrics.slices import factors
from touchstone.publish.dashboard.pages import dashboard

Results = dict[tuple[str, str], list[int]]
# One attempt per problem and combination of effort and prompt.
RESULTS: Results = {
    ("low", "a"): [0, 0, 0, 1],
    ("low", "b"): [0, 0, 1, 1],
    ("high", "a"): [0, 0, 1, 1],
    ("high", "b"): [1, 1, 1, 0],
}
SETTINGS = (0.05, 0.05, 0.8, 2000, 7, 0.95, "all", None)


def frames(results: Results) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
    """Attempts, outcomes and problems."""
    rows = [
        {"model": "m", "tier": "T0", "oid": f"p{place}", "iteration_id": f"{effort}{prompt}"}
        | {"effort": effort, "prompt": prompt, "passed": bool(passed)}
        for (effort, prompt), each in results.items()
        for place, passed in enumerate(each)
    ]
    table = pl.LazyFrame(rows)
    problems = table.select("oid", cluster=pl.lit(None, pl.String)).unique()
    return table.drop("passed"), table.select("model", "tier", "oid", "iteration_id", "passed"), problems


def test_levels_and_effects_by_hand() -> None:
    tables = frames(RESULTS)
    levels = factors(*tables, ["effort", "prompt"], IntervalSettings()).collect()
    assert levels.select("factor", "level", "problems", "attempts", "pass_at_1").rows() == [
        ("effort", "low", 4, 8, 0.375),
        ("effort", "high", 4, 8, 0.625),
        ("prompt", "a", 4, 8, 0.375),
        ("prompt", "b", 4, 8, 0.625),
    ]
    effort, prompt, both = factor_effects(*tables, ["effort", "prompt"], *SETTINGS).collect().to_dicts()
    # Per problem over both prompts: 1/2, 1/2, 1/2, -1/2 for the effort.
    assert (effort["difference"], effort["problems"], effort["ci_units"]) == (0.25, 4, 4)
    assert prompt["difference"] == 0.25
    # (high - low at b) - (high - low at a): 1, 1, -1, -1.
    assert (both["difference"], both["p_value"], both["p_adjusted"]) == (0.0, 1.0, 1.0)
    spread = t_critical(3, 0.95) * math.sqrt(4 / 3 / 4)
    assert (both["ci_low"], both["ci_high"]) == pytest.approx((-spread, spread))
    assert both["other_level"] == "b" and both["other_reference"] == "a" and both["reference"] == "low"


def test_a_level_is_compared_on_problems_that_have_both() -> None:
    apart = {("low", "a"): [1, 1], ("high", "a"): []}
    assert factor_effects(*frames(apart), ["effort"], *SETTINGS).collect().is_empty()
    attempts, outcomes, problems = frames(RESULTS)
    some = attempts.filter((pl.col("oid") != "p3") | (pl.col("effort") == "low"))
    [effort] = factor_effects(some, outcomes, problems, ["effort"], *SETTINGS).collect().to_dicts()
    assert effort["problems"] == 3 and effort["difference"] == pytest.approx(0.5)
    shuffled = some.collect().sample(fraction=1, shuffle=True, seed=1).lazy()
    [again] = factor_effects(shuffled, outcomes, problems, ["effort"], *SETTINGS).collect().to_dicts()
    assert again == effort


def test_other_factors_are_held_equal() -> None:
    only_a = {levels: each for levels, each in RESULTS.items() if levels != ("low", "b")}
    effort, _, both = factor_effects(*frames(only_a), ["effort", "prompt"], *SETTINGS).collect().to_dicts()
    # At prompt a: 0, 0, 1, 0. Attempts at (high, b) have no match, and no problem has all four combinations.
    assert effort["difference"] == 0.25 and effort["ci_units"] == 4
    assert (both["problems"], both["difference"], both["p_adjusted"]) == (0, None, None)


@pytest.mark.services
def test_through_the_command_line(folder: Folder, touchstone: Command) -> None:
    rows = [f"p{p},{e}{i},{(p + i + len(e)) % 3 > 0},{e}" for p in range(9) for e in ("low", "high") for i in (1, 2)]
    folder.problems("oid,filename\n" + "".join(f"p{place},a.py\n" for place in range(9)))
    folder.fixes("m", "\n".join(["oid,iteration_id,passed,effort", *rows]) + "\n")
    folder.configure(k_values=[1], factors=["efort"])
    refused = touchstone("run", "--config", folder.config, dagster=False)
    assert refused.returncode == 2
    assert "factors: the attempts have no column 'efort' (did you mean 'effort'?)" in refused.stderr
    folder.configure(k_values=[1], factors=["effort"])
    shown = touchstone("run", "--config", folder.config, dagster=False)
    assert shown.returncode == 0 and "effort high - low" in shown.stdout and "pass@1 by factor" in shown.stdout
    page = Client(dashboard(folder.output, "token")).get("/factors").text
    assert "effort high - low" in page and 'href="/factors"' in page


def test_without_factors_nothing_is_shown(finished: Folder) -> None:
    assert 'href="/factors"' not in Client(dashboard(finished.output, "token")).get("/").text


@pytest.mark.nightly
@pytest.mark.parametrize(("problems", "attempts", "clusters"), [(20, 1, 0), (40, 3, 0), (150, 5, 0), (120, 2, 30)])
def test_intervals_contain_the_true_effects(problems: int, attempts: int, clusters: int) -> None:
    runs, generator, settings = 1000, np.random.default_rng([problems, attempts]), ComparisonSettings(permutations=2000)
    names = [str(place) for place in range(problems)]
    groups = [str(place % clusters) if clusters else name for place, name in enumerate(names)]
    covered, alarms, pairs = 0, 0, []
    for _ in range(runs):
        # Additive on average, by problem or cluster: base, effect of either factor (0.1), and their interaction (0.1).
        drawn = generator.uniform(0, [[0.4], [0.2], [0.2], [0.2]], (4, clusters or problems))
        base, first, second, more = drawn[:, [int(group) for group in groups]]
        chances = {"11": base, "21": base + first, "12": base + second, "22": base + first + second + more}
        passed = {cell: generator.binomial(attempts, chance) for cell, chance in chances.items()}
        cells = {f"c_{cell}": each for cell, each in passed.items()} | {f"n_{cell}": attempts for cell in passed}
        found = difference_of_differences(pl.DataFrame({"cluster": groups} | cells), settings)
        covered += found["ci_low"] <= 0.1 <= found["ci_high"]
        alarms += found["p_value"] <= 0.05 and found["difference"] < 0
        sides = {"n_a": 2 * attempts, "c_a": passed["11"] + passed["12"]}
        sides |= {"n_b": 2 * attempts, "c_b": passed["21"] + passed["22"]}
        pairs.append(
            pl.DataFrame(
                {"oid": names, "cluster": groups if clusters else [None] * problems} | sides,
                schema_overrides={"cluster": pl.String},
            )
        )
    results = compare_pairs(pairs, settings)
    main = sum(result.ci_low <= 0.15 <= result.ci_high for result in results) / runs  # type: ignore[operator]
    print(f"{problems} problems, {attempts} attempts, {clusters} clusters: {covered / runs:.3f}, main {main:.3f}")
    assert 0.93 <= covered / runs <= 0.97
    assert 0.93 <= main <= 0.97
    assert alarms / runs <= 0.025
