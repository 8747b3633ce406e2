"""The cost of an attempt's tokens, and which of the configured prices applies.

A price is looked up by the model's full name, in any spelling ("Claude Opus 4.5" and "claude-opus-4-5" are the same),
optionally followed by a release: a date such as 20251101 or 2025-11-01, or `latest`. Nothing else may follow, so
gpt-4o-mini never gets the price of gpt-4o, nor claude-sonnet-4-5 that of claude-sonnet-4.
"""

from collections.abc import Mapping

import polars as pl

from touchstone.config.scoring import Price, Scoring, price_key
from touchstone.vocabulary import MAX_AMOUNT

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_MILLION = 1_000_000
_CACHE_WRITE_FACTOR = 1.25
_RELEASE = r"-(20\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])|latest)$"


def cost_at(priced_as: pl.Expr, prices: Mapping[str, Price]) -> pl.Expr:
    """The cost of the tokens at the price of that name; null if there is none."""
    cost = pl.lit(None, pl.Float64)
    for name, price in prices.items():
        cost = pl.when(priced_as == name).then(token_cost(price)).otherwise(cost)
    return cost


def price_name(model: pl.Expr, scoring: Scoring) -> pl.Expr:
    """The name of the model's price, as spelled in the configuration or the defaults; null if it has none.

    >>> pl.select(price_name(pl.lit("claude-opus-4-5-20251101"), Scoring())).item()
    'claude-opus-4.5'
    """
    names = {price_key(name): name for name in scoring.all_prices}
    key = model.str.strip_chars().str.to_lowercase().str.replace_all(r"[\s_.]+", "-")
    released = key.str.replace(_RELEASE, "")
    spelled = [each.replace_strict(names, default=None, return_dtype=pl.String) for each in (key, released)]
    return pl.coalesce(spelled)


def token_cost(price: Price) -> pl.Expr:
    """Tokens times price. Null if tokens or their price are missing, or above `MAX_AMOUNT`."""
    write_price = price.cache_write if price.cache_write is not None else price.input * _CACHE_WRITE_FACTOR
    prices = (price.input, price.output, price.cache_read, write_price)
    given = pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null()
    total = pl.lit(0.0)
    for tokens, dollars in zip(TOKENS, prices, strict=True):
        count = pl.col(tokens).fill_null(0)
        unpriced = pl.when(count == 0).then(0.0)
        total = total + (unpriced if dollars is None else count * dollars / _MILLION)
    return pl.when(given & (total <= MAX_AMOUNT)).then(total)
