"""Prices of tokens with the dates from which they are valid, and the files that list them: TOML or JSON of the user's.

Which price applies to an attempt belongs in `metrics.attempts`. Nothing is downloaded.
"""

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from touchstone.config.file import Section, first_problem, read_config_file
from touchstone.errors import TouchstoneError

_MAX_PRICE = 1_000_000
_DOLLARS = Field(ge=0, le=_MAX_PRICE, allow_inf_nan=False)
_LITELLM = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_read": "cache_read_input_token_cost",
    "cache_write": "cache_creation_input_token_cost",
}
_CACHE_WRITE_FACTOR = 1.25


class Price(Section):
    """US dollars per million tokens. Cache writes cost 1.25 times the input price by default."""

    input: Annotated[float, _DOLLARS]
    output: Annotated[float, _DOLLARS]
    cache_read: Annotated[float, _DOLLARS] | None = None
    cache_write: Annotated[float, _DOLLARS] | None = None
    valid_from: date | None = None

    @property
    def per_million(self) -> tuple[float, float, float | None, float]:
        """Dollars per million tokens: input, output, cache reads, cache writes."""
        written = self.input * _CACHE_WRITE_FACTOR if self.cache_write is None else self.cache_write
        return self.input, self.output, self.cache_read, written


def price_key(model: str) -> str:
    """A model's name, normalized for looking up prices: "Claude Opus 4.5" and "claude-opus-4-5" are equal.

    >>> price_key("Claude Opus_4.5")
    'claude-opus-4-5'
    """
    return re.sub(r"[\s_.]+", "-", model.strip().lower())


def _by_date(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    dates = [price.valid_from for price in prices]
    if twice := {day for day in dates if dates.count(day) > 1}:
        raise ValueError(f"two prices with the valid_from {twice.pop() or 'missing'}; keep one")
    return tuple(sorted(prices, key=lambda price: price.valid_from or date.min))


def _one_price_a_model(prices: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, str] = {}
    for name in prices:
        other = seen.setdefault(price_key(name), name)
        if other != name:
            raise ValueError(f"'{other}' and '{name}' are the same model; give one price")
    return prices


# The prices of a model: one, or several with dates; the first may have none and is then valid before the others.
_OfModel = Annotated[
    tuple[Price, ...],
    BeforeValidator(lambda given: given if isinstance(given, list | tuple) else [given]),
    Field(min_length=1),
    AfterValidator(_by_date),
]
Prices = Annotated[dict[str, _OfModel], AfterValidator(_one_price_a_model)]


class PriceFile(Section):
    """A file with prices: its name, a hash of its prices, and the prices, which settings and manifests leave out."""

    name: str
    sha256: str
    prices: Prices = Field(exclude=True, repr=False)


def read_price_file(path: Path) -> PriceFile:
    """The prices in a file of ours (TOML or JSON) or in LiteLLM's `model_prices_and_context_window.json`."""
    data = read_config_file(path, "price")
    if any(isinstance(entry, dict) and "litellm_provider" in entry for entry in data.values()):
        data = _from_litellm(path, data)
    try:
        prices = TypeAdapter(Prices).validate_python(data)
    except ValidationError as error:
        raise TouchstoneError(f"{path}: {first_problem(error)}") from None
    content = repr(sorted(prices.items()))
    return PriceFile(name=path.name, sha256=hashlib.sha256(content.encode()).hexdigest(), prices=prices)


def _from_litellm(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """LiteLLM's dollars per token, which have no dates, as ours per million; other entries are not about tokens."""
    found: dict[str, dict[str, float]] = {}
    for name, entry in data.items():
        figures = {ours: entry[key] for ours, key in _LITELLM.items() if entry.get(key) is not None}
        if name == "sample_spec" or not {"input", "output"} <= figures.keys():
            continue
        if not all(isinstance(figure, int | float) for figure in figures.values()):
            raise TouchstoneError(f"{path}: {name}: a cost per token is not a number")
        price = {ours: float(f"{figure * 1e6:.12g}") for ours, figure in figures.items()}
        if found.setdefault(price_key(name), price) != price:
            raise TouchstoneError(f"{path}: {name}: another spelling of the model has another price; keep one")
    return found
