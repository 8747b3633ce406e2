"""Which price a model's tokens are counted at: by its whole name, or by that name with a release date behind it."""

from pathlib import Path

import polars as pl
import pytest

from touchstone.config import load_config
from touchstone.config.scoring import Price, Scoring
from touchstone.errors import TouchstoneError
from touchstone.metrics.attempts import price_name

PRICES = Scoring(
    prices={
        "gpt-4o-mini": Price(input=0.15, output=0.6),
        "claude-opus-4-1": Price(input=15, output=75),
        "claude-opus-4-1-20250805": Price(input=14, output=70),
        "GPT 4.1": Price(input=2, output=8),
    }
)


def priced_as(model: str, scoring: Scoring = PRICES) -> str | None:
    return pl.select(price_name(pl.lit(model), scoring)).item()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4.5", "claude-opus-4.5"),
        ("claude-opus-4-5", "claude-opus-4.5"),
        ("Claude Opus 4.5", "claude-opus-4.5"),
        ("claude-opus-4-5-20251101", "claude-opus-4.5"),
        ("claude-opus-4-5_20251101", "claude-opus-4.5"),
        ("claude-opus-4.5-latest", "claude-opus-4.5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4-1-2025-04-14", "GPT 4.1"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1-20250805"),
        ("claude-opus-4-1-20250806", "claude-opus-4-1"),
    ],
)
def test_a_price_is_found_by_the_name_or_by_the_name_before_a_date(model: str, name: str) -> None:
    assert priced_as(model) == name


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4.5",
        "gpt-4o-mini",
        "gpt-4o-audio-preview",
        "gpt-4o-2024",
        "gpt-4o-20241399",
        "gpt-4",
        "gpt-4oo",
        "my-gpt-4o",
        "gpt-4o-",
    ],
)
def test_a_model_never_gets_the_price_of_another_whose_name_it_starts_with(model: str) -> None:
    assert priced_as(model, Scoring()) is None


def test_a_configured_price_replaces_the_default_one_however_it_is_written() -> None:
    mine = Scoring(prices={"claude-opus-4-5": Price(input=1, output=1)})
    assert priced_as("claude-opus-4.5", mine) == "claude-opus-4-5"


def test_two_prices_for_one_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    prices = '[scoring.prices]\n"my-1.5" = {input = 1, output = 1}\n"My 1-5" = {input = 2, output = 2}\n'
    path.write_text('fixes_dir = "f"\noutput_dir = "o"\n' + prices)
    with pytest.raises(TouchstoneError, match=r"scoring\.prices: 'my-1\.5' and 'My 1-5' are the same model"):
        load_config(path)
