"""Two Inspect logs, compared as files, against a paired test written here."""

import random
from pathlib import Path

import numpy as np
import pytest
import scipy

from tests.ingest.adapters.inspect_files import sample, write_eval
from touchstone.comparison.compare import compare_models
from touchstone.comparison.inputs import open_input
from touchstone.comparison.pairs import ComparisonSettings

SAMPLES, EPOCHS, RESAMPLES = 200, 5, 20_000


def write_log(path: Path, passes: list[list[bool]]) -> str:
    samples: list[object] = [
        sample(id=f"s{number}", epoch=epoch, scores={"tests": {"value": "C" if passed else "I"}}, uuid=None)
        for number, epochs in enumerate(passes)
        for epoch, passed in enumerate(epochs, start=1)
    ]
    return str(write_eval(path, samples))


def outcomes(seed: int, gain: float) -> list[list[bool]]:
    """Epochs of samples that are easier or harder than others, the same in both logs."""
    difficulty, source = random.Random(0), random.Random(seed)
    chances = [difficulty.random() * 0.8 + gain for _ in range(SAMPLES)]
    return [[source.random() < chance for _ in range(EPOCHS)] for chance in chances]


@pytest.mark.services
@pytest.mark.parametrize("gain", [0.0, 0.03, 0.15])
def test_the_difference_and_its_p_value_are_those_of_an_independent_test(tmp_path: Path, gain: float) -> None:
    old, new = outcomes(1, 0.0), outcomes(2, gain)
    before = open_input(write_log(tmp_path / "a.eval", old))
    after = open_input(write_log(tmp_path / "b.eval", new))
    (result,) = compare_models(before, after, ComparisonSettings()).values()

    means = [np.mean(passes, axis=1) for passes in (new, old)]
    independent = scipy.stats.permutation_test(
        means,
        lambda a, b, axis: np.mean(a - b, axis=axis),
        vectorized=True,
        batch=1_000,
        permutation_type="samples",
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(0),
    )
    assert result.difference == pytest.approx(independent.statistic)
    sampling_error = np.sqrt(independent.pvalue * (1 - independent.pvalue) / RESAMPLES)
    assert result.p_value == pytest.approx(independent.pvalue, abs=max(5 * sampling_error, 2 / RESAMPLES))
