"""A plan that is estimated from data has its power on average, although the estimates have errors of their own."""

import numpy as np
import polars as pl
import pytest

from tests.inference.test_detectable import changed, judged
from tests.inference.test_planning import pairs_of_rates
from touchstone.comparison.planning import paired_data
from touchstone.inference.planning import Goal, problems_needed

RATE, ICC, CORRELATION, EFFECT = 0.6, 0.4, 0.7, 0.12


@pytest.mark.nightly
@pytest.mark.parametrize(("problems", "attempts", "planned"), [(20, 5, 5), (60, 5, 1), (60, 3, 10)])
def test_plans_from_data_have_their_power_on_average(
    problems: int, attempts: int, planned: int, runs: int = 100
) -> None:
    generator = np.random.default_rng([problems, attempts, planned])
    names = [f"p{place}" for place in range(problems)]
    listed = pl.LazyFrame({"oid": names, "cluster": None}, schema_overrides={"cluster": pl.String})
    hits, sizes = 0, []
    for _ in range(runs):
        passed = generator.binomial(attempts, pairs_of_rates(generator, RATE, ICC, CORRELATION, problems))
        counts = pl.concat(
            pl.LazyFrame({"model": model, "tier": "T0", "oid": names, "k": 1, "n": attempts, "c": c})
            for model, c in zip("ab", passed, strict=True)
        )
        data = paired_data(counts, listed, ("a", "T0"), ("b", "T0"), Goal(EFFECT))
        (needed,) = problems_needed(data.population, [planned], Goal(EFFECT))
        assert needed is not None
        rates = pairs_of_rates(generator, RATE, ICC, CORRELATION, needed)
        rates[1] = changed(rates[1], RATE, EFFECT, "worse")
        hits += judged(planned, [generator.binomial(planned, side) for side in rates]).verdict == "worse"
        sizes.append(needed)
    middle = np.percentile(sizes, [5, 50, 95])
    print(f"{problems} x {attempts}, planned for {planned}: {hits / runs:.2f} found with {middle} problems")
    assert 0.75 - 0.12 <= hits / runs <= 0.9 + 0.08
