"""Absurd configuration stops with one line before anything runs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from touchstone.config import EvaluationConfig, load_config
from touchstone.config.scoring import Price
from touchstone.errors import TouchstoneError

PATHS = {"fixes_dir": "f", "output_dir": "o"}


def refusal(tmp_path: Path, text: str, name: str = "config.json") -> str:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(TouchstoneError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message and len(message) < len(str(path)) + 200
    return message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k_values": [10**30]}, "k_values: k must be at most 1,000,000, got 1,000,000,"),
        ({"k_values": list(range(1, 200))}, "give at most 100 k values, got 199"),
        ({"intervals": {"replicates": 10**9}}, "intervals.replicates: Input should be less than or equal to 1000000"),
        ({"intervals": {"seed": 2**63}}, "intervals.seed: Input should be less than"),
        ({"comparison": {"permutations": 10**9}}, "comparison.permutations: Input should be less than"),
        ({"synthetic": {"problems": 10**12}}, "synthetic.problems: Input should be less than"),
        ({"scoring": {"composite": {"pass_rate": 1e308}}}, "pass_rate: Input should be less than"),
        ({"scoring": {"grades": {"A": 7}}}, "the threshold of grade 'A' must be from 0 to 1, got 7"),
        ({"validation": {"limits": {"seconds": 1e300}}}, "validation.limits.seconds: Input should be less than"),
        ({"validation": {"limits": {"memory_mb": 10**18}}}, "memory_mb: Input should be less than"),
        ({"data_type": "x" * 10_000}, "data_type: Input should be 'all'"),
        ({"fixes_dir": "a\0b"}, "has a character that no name or path may have"),
        ({"models": ["\ud800"]}, "has a character that no name or path may have"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_value_out_of_bounds_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    assert message in refusal(tmp_path, json.dumps(PATHS | change))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config.json", '{"fixes_dir": "a", "fixes_dir": "b", "output_dir": "o"}', "the key 'fixes_dir' appears twice"),
        ("config.json", '{"intervals": {"seed": 1, "seed": 2}}', "the key 'seed' appears twice"),
        ("config.json", '{"k_values": [' + "9" * 5000 + "]}", "the number 9999999999… has 5,000 digits"),
        ("config.json", '{"comparison": {"threshold": NaN}}', "NaN is not a number that JSON has"),
        ("config.json", '{"a": ' + "[" * 100_000, "nested too deeply"),
        ("config.toml", "a = " + "[" * 100_000, "nested too deeply"),
        ("config.toml", 'fixes_dir = "f"\noutput_dir = "o"\n[comparison]\nthreshold = inf\n', "comparison.threshold: "),
        (
            "config.toml",
            'fixes_dir = "f"\noutput_dir = "o"\n[scoring.grades]\nA = nan\n',
            "must be from 0 to 1, got nan",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_text_that_python_would_take_or_choke_on(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text, name)


def numbers(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every field of a section that is a number; lists and tables of numbers have validators of their own."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from numbers(field.annotation, f"{prefix}{name}.")
        elif field.annotation in (int, float, int | None, float | None):
            yield f"{prefix}{name}", field


@pytest.mark.parametrize(
    "field", [pytest.param(field, id=name) for model in (EvaluationConfig, Price) for name, field in numbers(model)]
)
def test_every_number_has_an_upper_bound(field: FieldInfo) -> None:
    assert any(hasattr(rule, "le") or hasattr(rule, "lt") for rule in field.metadata)
