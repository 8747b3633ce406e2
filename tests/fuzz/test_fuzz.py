"""A few mutations of every reader's corpus with each test run, and many at night: a result or one line each."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.engine import Session, mutated, time_limit
from tests.fuzz.targets import CORPUS, TARGETS, Target

# Those that write files and start a query per input take milliseconds; the others tens of microseconds.
_DAY, _NIGHT = 3, 300


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_corpus(target: Target) -> None:
    """Files that crashed a reader once are among them."""
    corpus = target.corpus()
    assert corpus
    for data in corpus[:_DAY] if target.examples else corpus:
        target.one_input(data)


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_mutations(target: Target) -> None:
    corpus = [each for each in target.corpus() if len(each) < 4096]
    inputs = _NIGHT if settings().max_examples > 10 else _DAY

    @settings(max_examples=inputs)
    @given(seed=st.integers(0, 2**32), noise=st.binary(max_size=40), is_noise=st.booleans())
    def reads_or_refuses(seed: int, noise: bytes, is_noise: bool) -> None:
        with time_limit():
            target.one_input(noise if is_noise else mutated(random.Random(seed), corpus, target.words))

    reads_or_refuses()


@pytest.mark.nightly
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_guided_mutations(target: Target) -> None:
    Session(target, seed=7).run(seconds=20)


def test_every_folder_of_the_corpus_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
