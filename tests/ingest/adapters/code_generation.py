"""What the tests of code-generation formats share: their sample files, and short forms of tables."""

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from touchstone.ingest.adapters.table import AdapterTable

FILES = Path(__file__).parent / "files"
HUMAN_EVAL = FILES / "human_eval" / "samples.jsonl_results.jsonl"
EVALPLUS = FILES / "evalplus" / "acme--fixer-7b_openai_temp_0.8_eval_results.json"
LIVECODEBENCH_TESTS = FILES / "livecodebench" / "handmade_Scenario.codegeneration_3_0.2_eval.json"

deep: object = True
for _ in range(500):
    deep = [deep]
ODD = (None, True, 0, -1, 10**400, math.nan, math.inf, "", "\ud800", "x" * 3000, [], {}, [[]], {"a": [None]}, deep)


def figures(table: AdapterTable) -> dict[tuple[str | None, str], tuple[float | None, float | None]]:
    """By suite and name: the reported and the recomputed value."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 4)

    return {(each.suite, each.name): (rounded(each.reported), rounded(each.recomputed)) for each in table.figures}


def rows(table: AdapterTable, *columns: str) -> list[tuple[Any, ...]]:
    return table.frame.select(columns).rows()


def refused(table: AdapterTable) -> list[tuple[int, str, str]]:
    return table.frame.filter(table.frame["__broken"].is_not_null()).select("__line", "__kind", "__broken").rows()


def python_of(command: str, package: str) -> Path:
    """The interpreter of the environment that a tool's command on PATH belongs to; skips the test without one."""
    found = shutil.which(command)
    if found is None:
        pytest.skip(f"{package} is not installed: install it into an environment, and put that on PATH")
    return Path(found).parent / "python"


def swapped(value: object, places: st.DataObject) -> object:
    """The value with one part of it replaced by something odd."""
    if isinstance(value, dict) and value and places.draw(st.booleans()):
        key = places.draw(st.sampled_from(sorted(value)))
        return value | {key: swapped(value[key], places)}
    if isinstance(value, list) and value and places.draw(st.booleans()):
        place = places.draw(st.integers(0, len(value) - 1))
        return [*value[:place], swapped(value[place], places), *value[place + 1 :]]
    return places.draw(st.sampled_from(ODD))
