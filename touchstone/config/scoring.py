"""The section `scoring` of the configuration: weights, grade thresholds, and prices of tokens with their dates.

Prices may be listed in files of the user's, TOML or JSON; nothing is downloaded. Which price applies to an attempt
belongs in `metrics.attempts`.
"""

import hashlib
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from touchstone.config.file import Section, first_problem, read_config_file
from touchstone.errors import TouchstoneError
from touchstone.vocabulary import CLASSES, DEFAULT_TIER

_MAX_WEIGHT = 1_000_000


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


DEFAULT_PRICES: dict[str, tuple[Price, ...]] = {
    "claude-opus-4.5": (Price(input=15.0, output=75.0, cache_read=1.5),),
    "claude-sonnet-4": (Price(input=3.0, output=15.0, cache_read=0.3),),
    "gpt-4o": (Price(input=5.0, output=15.0, cache_read=2.5),),
}


class CompositeWeights(Section):
    """Weights of the pass rate and the judge's score in the composite score; how a missing judge's score counts."""

    pass_rate: float = Field(0.5, ge=0, le=_MAX_WEIGHT)
    """Weight of passing."""
    impl_rate: float = Field(0.5, ge=0, le=_MAX_WEIGHT)
    """Weight of the judge's score; the two cannot both be 0."""
    missing: Literal["exclude", "zero"] = "exclude"
    """Attempts without a judge's score: `exclude` omits them from the composite score, grade and uplift; `zero`
    counts the missing score as 0, for data in which every attempt should have been judged."""

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        if self.pass_rate + self.impl_rate == 0:
            raise ValueError("pass_rate and impl_rate cannot both be 0")
        return self


class CodeWeights(Section):
    """Weights of the components of the code score, 0 for one that does not count, and the deduction per warning."""

    compilation: float = Field(0.4, ge=0, le=1)
    """Weight of compiling. The four weights add up to 1."""
    tests: float = Field(0.5, ge=0, le=1)
    """Weight of the share of tests passed."""
    lint: float = Field(0.1, ge=0, le=1)
    """Weight of the lint score."""
    structure: float = Field(0.0, ge=0, le=1)
    """Weight of `structure_score`: the share of expected functions and types that the code has."""
    per_warning: float = Field(0.1, ge=0, le=1)
    """Deduction from the lint score per warning."""

    @model_validator(mode="after")
    def _a_whole(self) -> Self:
        total = self.compilation + self.tests + self.lint + self.structure
        if abs(total - 1) > 1e-9:
            raise ValueError(f"compilation, tests, lint and structure must add up to 1, not {total:g}")
        return self


class SuiteSettings(Section):
    """Optional settings of suite scores: weights of suites, credit per class, and the latency that scores 0."""

    weights: dict[str, float] = {}
    """Weight of a suite in the overall weighted score, at most 1,000,000; 1 for suites without one."""
    class_credit: dict[str, float] = {}
    """Credit for a failure class in the weighted score, such as `{"refusal": 0.5}`."""
    latency_limit_ms: float | None = Field(None, gt=0, le=1e12)
    """Latency at which the latency score is 0."""

    @field_validator("weights")
    @classmethod
    def _not_negative(cls, weights: dict[str, float]) -> dict[str, float]:
        for suite, weight in weights.items():
            if not 0 <= weight <= _MAX_WEIGHT:
                raise ValueError(f"the weight of suite '{suite}' must be from 0 to {_MAX_WEIGHT:,}, got {weight:g}")
        return weights

    @field_validator("class_credit")
    @classmethod
    def _known_classes(cls, credit: dict[str, float]) -> dict[str, float]:
        for name, value in credit.items():
            if name not in CLASSES:
                raise ValueError(f"unknown class '{name}'; known classes: {', '.join(CLASSES)}")
            if not 0 <= value <= 1:
                raise ValueError(f"the credit of class '{name}' must be from 0 to 1, got {value:g}")
        return credit


class Scoring(Section):
    """Weights, grade thresholds and prices."""

    composite: CompositeWeights = CompositeWeights()
    code: CodeWeights = CodeWeights()
    grades: dict[str, float] = {"A": 0.95, "B": 0.85, "C": 0.75, "D": 0.65}
    """Lowest composite score of each grade."""
    failing_grade: str = "F"
    """Grade below all of these."""
    baseline_tier: str = DEFAULT_TIER
    """Tier that uplift is relative to."""
    prices: Prices = {}
    """US dollars per million tokens by model, such as `{"my-model": {"input": 3, "output": 15, "cache_read": 0.3}}`,
    or a list of these, each with a date (`valid_from`); `cache_write` defaults to 1.25 times `input`. Claude Opus 4.5,
    Claude Sonnet 4 and GPT-4o have a price. See [which price a model gets](metrics.md#which-price-a-model-gets)."""
    price_file: PriceFile | None = None
    """File with prices of models that `prices` does not have: TOML or JSON of the same form, or LiteLLM's
    `model_prices_and_context_window.json`."""
    suites: SuiteSettings = SuiteSettings()

    @field_validator("grades")
    @classmethod
    def _falling(cls, grades: dict[str, float]) -> dict[str, float]:
        for name, threshold in grades.items():
            if not 0 <= threshold <= 1:
                raise ValueError(f"the threshold of grade '{name}' must be from 0 to 1, got {threshold:g}")
        ordered = dict(sorted(grades.items(), key=lambda item: -item[1]))
        if len(set(ordered.values())) < len(ordered):
            raise ValueError("two grades have the same threshold")
        return ordered

    @property
    def price_lists(self) -> list[tuple[str, dict[str, tuple[Price, ...]]]]:
        """Lists of prices by model, each with its source; the first list that has a model counts."""
        file = [] if self.price_file is None else [(self.price_file.name, self.price_file.prices)]
        return [("configuration", self.prices), *file, ("default", DEFAULT_PRICES)]

    @property
    def all_prices(self) -> dict[str, tuple[Price, ...]]:
        """The prices of every model, the earliest first."""
        found: dict[str, tuple[str, tuple[Price, ...]]] = {}
        for _, prices in self.price_lists:
            for name, of_model in prices.items():
                found.setdefault(price_key(name), (name, of_model))
        return dict(found.values())


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
