"""Prices with dates: which one an attempt gets, what the table says of it, and files that are refused in one line."""

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Command, Folder
from touchstone.config.scoring import DEFAULT_PRICES, Price, Scoring, read_price_file
from touchstone.errors import TouchstoneError
from touchstone.metrics.attempts import cost_at, prices
from touchstone.tables import TABLES, conform, violations

DATED = """
[[m]]
valid_from = 2026-03-01
input = 2
output = 10
cache_read = 0.2
[[m]]
valid_from = 2026-01-01
input = 3
output = 15
"""


def written(tmp_path: Path, text: str, name: str = "prices.toml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def costs(scoring: Scoring, *days: str | None) -> list[float | None]:
    """The costs of a million input tokens of the model m on these days."""
    frame = pl.DataFrame({"attempted_on": days}, schema={"attempted_on": pl.String}).with_columns(
        input_tokens=10**6, output_tokens=0, cache_read_tokens=0, cache_write_tokens=0
    )
    return frame.select(cost=cost_at(pl.lit("m"), {"m": scoring.all_prices["m"]}))["cost"].to_list()


def test_an_attempt_has_the_price_of_its_own_day(tmp_path: Path) -> None:
    scoring = Scoring(price_file=read_price_file(written(tmp_path, DATED)))
    days = ("2025-12-31", "2026-01-01", "2026-02-28", "2026-03-01", "2027-01-01", None)
    assert costs(scoring, *days) == [None, 3.0, 3.0, 2.0, 2.0, None]


def test_a_price_without_a_date_is_valid_before_the_others_and_for_attempts_without_a_day() -> None:
    scoring = Scoring.model_validate(
        {"prices": {"m": [{"valid_from": "2026-03-01", "input": 2, "output": 1}, {"input": 5, "output": 1}]}}
    )
    assert costs(scoring, "2020-01-01", None, "2026-03-01") == [5.0, 5.0, 2.0]


DAYS = st.dates(date(2020, 1, 1), date(2030, 1, 1))


@given(st.dictionaries(DAYS, st.integers(1, 9), min_size=1, max_size=5), st.lists(DAYS, max_size=9))
def test_the_latest_price_that_is_valid_counts(valid: dict[date, int], days: list[date]) -> None:
    scoring = Scoring.model_validate(
        {"prices": {"m": [{"valid_from": day, "input": price, "output": 1} for day, price in valid.items()]}}
    )
    latest = [max((start for start in valid if start <= day), default=None) for day in days]
    assert costs(scoring, *map(str, days)) == [start and float(valid[start]) for start in latest]


def test_the_configuration_counts_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    text = "[gpt-4o]\ninput = 1\noutput = 1\n[m]\ninput = 1\noutput = 1"
    scoring = Scoring(price_file=read_price_file(written(tmp_path, text)), prices={"M": Price(input=7, output=7)})
    found = {name: of_model[0].input for name, of_model in scoring.all_prices.items()}
    assert found == {"M": 7, "gpt-4o": 1, "claude-opus-4.5": 15, "claude-sonnet-4": 3}
    assert Scoring().all_prices == DEFAULT_PRICES


def test_the_table_says_which_price_was_used_and_how_old_it_was(tmp_path: Path) -> None:
    scoring = Scoring(price_file=read_price_file(written(tmp_path, DATED)))
    days = ["2026-01-02", "2026-02-10", "2026-03-31", "2026-03-05", None]
    names = ["m", "m", "m", "m", None]
    scores = pl.LazyFrame({"model": "m-latest", "priced_as": names, "attempted_on": days})
    made = conform(prices(scores, scoring), TABLES["prices"])
    assert violations(made, TABLES["prices"]) == {}
    assert made.collect().rows() == [
        ("m-latest", "m", "prices.toml", "2026-01-01", 3, 15, None, 3.75, 2, "2026-01-02", "2026-02-10", 40),
        ("m-latest", "m", "prices.toml", "2026-03-01", 2, 10, 0.2, 2.5, 2, "2026-03-05", "2026-03-31", 30),
    ]
    assert prices(scores.clear(), Scoring()).collect().is_empty()


LITELLM = {
    "sample_spec": {"litellm_provider": "one of", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "gpt-4.1": {
        "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06,
        "cache_read_input_token_cost": 5e-07, "input_cost_per_token_batches": 1e-06,
    },
    "gpt-image-1": {"litellm_provider": "openai", "input_cost_per_token": 5e-06},
}  # fmt: skip


def test_the_file_of_litellm(tmp_path: Path) -> None:
    read = read_price_file(written(tmp_path, json.dumps(LITELLM), "model_prices_and_context_window.json"))
    assert read.prices == {"gpt-4-1": (Price(input=2, output=8, cache_read=0.5),)}
    assert read.model_dump() == {"name": "model_prices_and_context_window.json", "sha256": read.sha256}


def litellm(name: str, **changes: object) -> str:
    return json.dumps(LITELLM | {name: {**LITELLM["gpt-4.1"], **changes}})


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("p.toml", "[m]\ninput = -1\noutput = 1", "m.0.input: Input should be greater than or equal to 0 (got -1)"),
        ("p.toml", "[m]\ninput = nan\noutput = 1", "m.0.input: Input should be a finite number (got nan)"),
        ("p.toml", "[m]\ninput = 1\noutput = 1\ncached = 2", "unknown key 'm.0.cached'"),
        ("p.toml", "[m]\ninput = 1", "the key 'm.0.output' is missing"),
        ("p.toml", "m = []", "m: Value should have at least 1 item"),
        ("p.toml", "[m]\ninput = 1\noutput = 1\nvalid_from = 'May'", "m.0.valid_from: Input should be a valid date"),
        ("p.toml", DATED + DATED, "m: two prices with the valid_from 2026-"),
        ("p.toml", "[m]\ninput = 1\noutput = 1\n[M]\ninput = 1\noutput = 1", "'m' and 'M' are the same model"),
        ("p.toml", "[[m]\n", "not valid TOML"),
        ("p.json", "[1]", "the price must be an object of keys and values"),
        ("p.json", '{"m": {"input": NaN, "output": 1}}', "NaN is not a number that JSON has"),
        ("p.json", litellm("gpt-4-1", input_cost_per_token=1), "gpt-4-1: another spelling of the model has another"),
        ("p.json", litellm("m", input_cost_per_token="2e-06"), "m: a cost per token is not a number"),
        ("p.json", litellm("m", output_cost_per_token=-1e-06), "m.0.output: Input should be greater than or equal"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_with_the_place(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(TouchstoneError) as caught:
        read_price_file(written(tmp_path, text, name))
    assert str(caught.value).startswith(f"{tmp_path / name}: {why}") and "\n" not in str(caught.value)


@pytest.mark.services
def test_a_run_with_a_price_file(folder: Folder, touchstone: Command) -> None:
    rows = ["a,1,true,2026-01-05T10:00:00Z", "a,2,false,1772500000", "b,1,true,2025-12-01", "b,2,true,"]
    header = "oid,iteration_id,passed,started_at,input_tokens,output_tokens\n"
    folder.fixes("m", header + "".join(f"{row},1000000,0\n" for row in rows))
    written(folder.root, DATED)
    folder.configure(scoring={"price_file": "prices.toml"})
    first = touchstone("run", "--config", folder.config, dagster=False)
    assert first.returncode == 0, first.stderr
    told = "m: 2 of 4 attempts have no cost (every price of 'm' has a date, and the attempt has none, such as "
    assert f"{told}'started_at', or the first price of 'm' is valid from 2026-01-01)" in first.stdout + first.stderr
    scores = pl.read_parquet(folder.output / "tables" / "attempt_scores" / "*.parquet")
    expected = [("2026-01-05", 3.0), ("2026-03-03", 2.0), ("2025-12-01", None), (None, None)]
    assert scores.select("attempted_on", "cost_usd").rows() == expected
    used = pl.read_parquet(folder.output / "tables" / "prices" / "*.parquet")
    assert used.select("valid_from", "attempts", "age_days").rows() == [("2026-01-01", 1, 4), ("2026-03-01", 1, 2)]
    # A changed price is a reason to score again.
    written(folder.root, DATED.replace("input = 3", "input = 4"))
    assert touchstone("run", "--config", folder.config, dagster=False).returncode == 0
    assert pl.read_parquet(folder.output / "tables" / "attempt_scores" / "*.parquet")["cost_usd"][0] == 4.0
