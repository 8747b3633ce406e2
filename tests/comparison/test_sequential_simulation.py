"""Many nights against one baseline in simulation: false alarms of the gate, and how soon it finds a drop.

300 problems with 5 attempts. The table in docs/statistics.md is made in the same way, with 800 series a row.
"""

import numpy as np
import polars as pl
import pytest

from touchstone.comparison.families import ComparisonSettings, PairList, compare_family
from touchstone.comparison.sequential import look_at
from touchstone.inference.paired_moments import outcome_matrix

PROBLEMS, ATTEMPTS, LOOKS, SERIES = 300, 5, 60, 200
ALPHA = 0.05


def worse_by_night(rates: np.ndarray, kind: str, first: int, generator: np.random.Generator) -> np.ndarray:
    """Whether each night, a row of true pass rates after that of the baseline, is called worse; `first` is a look."""
    n, clusters = np.full(rates.shape, ATTEMPTS), np.zeros(PROBLEMS, dtype=np.int64)
    if kind == "clusters":
        # What goes wrong with a project in a night moves all of its problems.
        size = generator.lognormal(0, 1, 40)
        clusters = generator.choice(40, PROBLEMS, p=size / size.sum()) + 1
        shocks = generator.beta(2, 2, (len(rates), 41))[:, clusters] * 2 - 1
        rates = rates + shocks * np.minimum(rates, 1 - rates) / 2
    passed = generator.random((len(rates), PROBLEMS, ATTEMPTS)) < rates[:, :, None]
    if kind == "reused":
        # One of five attempts is new in a night.
        for night in range(2, len(rates)):
            kept = np.arange(ATTEMPTS) != night % ATTEMPTS
            passed[night][:, kept] = passed[night - 1][:, kept]
    if kind == "growing":
        # Two problems of the baseline are replaced by others every night.
        n = n * (np.arange(PROBLEMS) >= 2 * np.arange(len(rates))[:, None])
    matrix = outcome_matrix(n, passed.sum(axis=2) * (n > 0), clusters)
    nights = np.arange(1, len(rates))
    # All at once, which takes a tenth of the time; those that could be worse are then compared by themselves.
    whole = compare_family([PairList(matrix, np.zeros_like(nights), nights)], ComparisonSettings(same_model=True))
    possible = whole.select((pl.col("p_value") < 0.01) | (pl.col("p_changed") < 0.01)).to_series()
    alarms = np.zeros(len(nights), dtype=bool)
    for night in nights[possible.fill_null(False).to_numpy()]:
        settings = ComparisonSettings(alpha=look_at(int(first + night - 1), LOOKS, ALPHA).level, same_model=True)
        found = compare_family([PairList(matrix, np.array([0]), np.array([night]))], settings)
        alarms[night - 1] = found["verdict"][0] == "worse"
    return alarms


def difficulties(kind: str, generator: np.random.Generator) -> np.ndarray:
    rates = generator.beta(1.2, 0.8, PROBLEMS)
    return np.select([generator.random(PROBLEMS) < 0.4, rates < 0.4], [1.0, 0.0], rates) if kind == "ties" else rates


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["new", "reused", "growing", "clusters", "ties"])
def test_sixty_nights_of_an_unchanged_model_raise_a_false_alarm_in_at_most_one_series_of_twenty(kind: str) -> None:
    generator = np.random.default_rng([1, len(kind)])
    series = [np.tile(difficulties(kind, generator), (LOOKS + 1, 1)) for _ in range(SERIES)]
    alarms = [worse_by_night(rates, kind, 1, generator).any() for rates in series]
    print(f"{kind}: {np.mean(alarms):.3f}")
    assert np.mean(alarms) <= ALPHA


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("drop", "first_night", "three_nights", "ten_nights"),
    [
        (0.02, 0.0, 0.0, 0.08),
        (0.05, 0.38, 0.65, 0.83),
        (0.08, 0.88, 0.97, 0.99),
        (0.1, 0.97, 0.99, 0.99),
        ("ten", 0.8, 0.95, 0.98),
    ],
)
def test_a_drop_on_night_31_is_found_as_soon_as_the_docs_say(
    drop: float | str, first_night: float, three_nights: float, ten_nights: float
) -> None:
    generator = np.random.default_rng([2, len(str(drop))])
    found = []
    for _ in range(SERIES):
        before = difficulties("new", generator)
        if isinstance(drop, str):
            # Ten problems that always passed never do.
            before[:10] = 1.0
            after = np.where(np.arange(PROBLEMS) < 10, 0.0, before)
        else:
            after = before * (1 - drop / before.mean())
        found.append(worse_by_night(np.vstack([before, *[after] * 10]), "new", 31, generator))
    shares = [np.array(found)[:, :nights].any(axis=1).mean() for nights in (1, 3, 10)]
    print(drop, *(f"{share:.3f}" for share in shares))
    assert all(share >= least for share, least in zip(shares, (first_night, three_nights, ten_nights), strict=True))
