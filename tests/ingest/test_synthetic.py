"""Invented data: the same bytes each time, the rates that were asked for, and no file harmed."""

import hashlib
import itertools
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from touchstone.errors import TouchstoneError
from touchstone.ingest import synthetic as synth
from touchstone.ingest.attempts import read_fixes
from touchstone.ingest.problems import read_problems
from touchstone.ingest.synthetic import parse_models, synthesise


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def passed(path: Path) -> pl.Series:
    return pl.read_csv(path)["plausible_fix"]


def test_the_files_are_the_seeds(tmp_path: Path) -> None:
    written = synthesise(tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        "problems.csv",
        "gemini_synthetic_fixes.csv",
        "chatgpt4.1_synthetic_fixes.csv",
        "claude_synthetic_fixes.csv",
    ]
    assert {path.name for path in written} == set(contents(tmp_path / "new" / "folder"))
    problems = pl.read_csv(written[0])
    assert problems.columns == ["oid", "filename"]
    assert problems["oid"].n_unique() == 10
    fixes = pl.read_csv(written[1])
    assert fixes.columns == ["oid", "iteration_id", "plausible_fix"]
    assert fixes["plausible_fix"].dtype == pl.Boolean
    assert fixes.group_by("oid").agg(pl.col("iteration_id").sort())["iteration_id"].to_list() == [
        list(range(1, 21))
    ] * len(problems)
    assert set(fixes["oid"]) == set(problems["oid"])


def test_ingest_accepts_every_row(tmp_path: Path) -> None:
    written = synthesise(tmp_path / "in", problems=7, iterations=3, tiers=2, models={"m": 0.5})
    problems = read_problems(written[0], tmp_path / "problems.parquet")
    fixes = read_fixes(written[1], "m", problems.problems, tmp_path / "fixes.parquet")
    assert (problems.rows, problems.quarantine.height) == (7, 0)
    assert (fixes.rows, fixes.accepted, fixes.quarantine.height) == (42, 42, 0)


def test_the_bytes_are_fixed_for_good(tmp_path: Path) -> None:
    """Figures in documents and reports rest on these bytes, whatever the machine and the version of numpy."""
    synthesise(tmp_path, tiers=2)
    digest = hashlib.sha256(b"".join(contents(tmp_path).values())).hexdigest()
    assert digest == "767a6778308fb9d453a9c34958e3675f201b0547ca0fe44e84c30e4e06c0221c"


def test_same_arguments_same_bytes_whatever_the_other_models(tmp_path: Path) -> None:
    synthesise(tmp_path / "a", models={"x": 0.3, "y": 0.8})
    synthesise(tmp_path / "b", models={"y": 0.8, "x": 0.3})
    synthesise(tmp_path / "c", models={"x": 0.3, "y": 0.8}, seed=8)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    one = contents(tmp_path / "a")
    for name, data in contents(tmp_path / "c").items():
        assert (data == one[name]) == (name == "problems.csv")
    synthesise(tmp_path / "d", models={"w": 0.3, "x": 0.3})
    other = contents(tmp_path / "d")
    assert {name: other[name] for name in ("problems.csv", "x_synthetic_fixes.csv")}.items() <= one.items()
    assert other["w_synthetic_fixes.csv"] != other["x_synthetic_fixes.csv"]


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.6, 0.77, 0.95])
def test_the_rate_is_met(tmp_path: Path, rate: float) -> None:
    *_, fixes = synthesise(tmp_path, problems=500, iterations=100, models={"m": rate})
    # The chances average to the rate exactly, so what is left is the noise of the single attempts, which
    # is largest where all chances are equal.
    assert passed(fixes).mean() == pytest.approx(rate, abs=4 * math.sqrt(rate * (1 - rate) / 50_000))


@pytest.mark.parametrize("problems", [1, 2, 3, 50])
def test_chances_average_to_the_rate_and_are_chances(problems: int) -> None:
    for rate in (0.0, 1e-9, 0.24, 0.25, 0.4999, 0.5, 0.75, 0.99, 1.0):
        stream = synth._generator(7, "m")
        chances = synth._pass_probabilities(rate, synth._difficulty(stream.random(problems), stream))
        assert math.fsum(chances) / problems == pytest.approx(rate, abs=1e-15)
        assert 0 <= chances.min() <= chances.max() <= 1


@pytest.mark.parametrize("rate", [0, 1])
def test_never_and_always_are_exact(tmp_path: Path, rate: int) -> None:
    *_, fixes = synthesise(tmp_path, problems=200, tiers=3, models={"m": rate})
    assert passed(fixes).unique().to_list() == [bool(rate)]


def test_problems_differ_so_pass_at_k_has_something_to_show(tmp_path: Path) -> None:
    *_, fixes = synthesise(tmp_path, problems=400, models={"m": 0.6})
    solved = pl.read_csv(fixes).group_by("oid").agg(c=pl.col("plausible_fix").sum())["c"].to_list()
    # With one chance for all, the counts would vary by 20 * 0.6 * 0.4 = 4.8, and pass@5 would be 0.99.
    assert statistics.variance(solved) > 3 * 4.8
    assert statistics.fmean(1 - math.comb(20 - c, 5) / math.comb(20, 5) for c in solved) < 0.96


def test_models_agree_on_what_is_hard(tmp_path: Path) -> None:
    written = synthesise(tmp_path, problems=300, models={"x": 0.5, "y": 0.6})
    x, y = (
        pl.read_csv(path).group_by("oid").agg(c=pl.col("plausible_fix").sum()).sort("oid")["c"] for path in written[1:]
    )
    correlation = pl.select(pl.corr(x, y, method="spearman")).item()
    assert 0.6 < correlation < 0.99


def test_each_tier_is_better_and_the_first_is_as_if_alone(tmp_path: Path) -> None:
    *_, alone = synthesise(tmp_path / "one", problems=1000, models={"m": 0.5})
    *_, fixes = synthesise(tmp_path / "three", problems=1000, models={"m": 0.5}, tiers=3)
    frame = pl.read_csv(fixes)
    assert frame.columns == ["oid", "iteration_id", "tier", "plausible_fix"]
    assert frame.filter(pl.col("tier") == "T0").drop("tier").equals(pl.read_csv(alone))
    rates = frame.group_by("tier", maintain_order=True).agg(pl.col("plausible_fix").mean())
    assert rates["tier"].to_list() == ["T0", "T1", "T2"]
    first, second, third = rates["plausible_fix"]
    assert first + 0.05 < second < third - 0.03


def test_ids_keep_their_order_as_text(tmp_path: Path) -> None:
    written = synthesise(tmp_path, problems=10_001, iterations=1, models={"m": 0.5})
    oids = pl.read_csv(written[0])["oid"]
    assert oids.is_sorted()
    assert oids.n_unique() == 10_001


@pytest.mark.parametrize("existing", ["problems.csv", "y_synthetic_fixes.csv"])
def test_an_existing_file_is_never_written_over_unasked(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("mine\n")
    models = {"x": 0.5, "y": 0.5}
    with pytest.raises(TouchstoneError, match="--force") as refusal:
        synthesise(tmp_path, models=models)
    assert str(tmp_path / existing) in str(refusal.value)
    assert contents(tmp_path) == {existing: b"mine\n"}

    synthesise(tmp_path, models=models, force=True)
    synthesise(tmp_path / "fresh", models=models)
    fresh = contents(tmp_path / "fresh")
    assert {name: (tmp_path / name).read_bytes() for name in fresh} == fresh


def test_a_failure_half_way_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthesise(tmp_path, models={"x": 0.5, "y": 0.5})
    before = contents(tmp_path)
    honest = synth._fixes
    earlier_calls = itertools.count()

    def full_disk(oids: pl.Series, outcomes: list[NDArray[np.bool_]]) -> pl.DataFrame:
        if next(earlier_calls):
            raise OSError(28, "No space left on device")
        return honest(oids, outcomes)

    monkeypatch.setattr(synth, "_fixes", full_disk)
    with pytest.raises(TouchstoneError, match=r"cannot be written \(No space left on device\)"):
        synthesise(tmp_path, models={"x": 0.5, "y": 0.5}, seed=8, force=True)
    assert contents(tmp_path) == before


RATE = "model '{}': the rate must be from 0 to 1, got {}"
ROWS = "problems × iterations × tiers is 10,000,000,000 rows per model; at most"
REFUSED: list[tuple[dict[str, Any] | list[str], str]] = [
    ({"problems": 0}, "problems must be at least 1, got 0"),
    ({"iterations": -1}, "iterations must be at least 1, got -1"),
    ({"tiers": 0}, "tiers must be at least 1, got 0"),
    ({"models": {}}, "give at least one model"),
    *(({"models": {"m": rate}}, RATE.format("m", rate)) for rate in (1.01, -0.1, math.nan)),
    ({"models": {"a...m": 0.5}}, "model name 'a...m' is not allowed"),
    ({"problems": 100_000, "iterations": 100_000}, ROWS),
    (["gemini"], "model 'gemini' has no rate: use NAME=RATE, for example gemini=0.77"),
    (["gemini=high"], "model 'gemini': the rate 'high' is not a number"),
    (["gemini="], "model 'gemini': the rate '' is not a number"),
    (["gemini=77"], RATE.format("gemini", 77.0)),
    (["gemini=nan"], RATE.format("gemini", math.nan)),
    (["=0.5"], "model name '' is not allowed"),
    (["a...b=0.5"], "model name 'a...b' is not allowed"),
    (["a=0.5", "a=0.6"], "model 'a' is given twice"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_wrong_arguments_and_models_are_refused_in_one_line(
    tmp_path: Path, given: dict[str, Any] | list[str], message: str
) -> None:
    with pytest.raises(TouchstoneError) as refusal:
        synthesise(tmp_path / "out", **given) if isinstance(given, dict) else parse_models(given)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "out").exists()
    assert parse_models(["b=1", "gpt-4.1+tools=0.25"]) == {"b": 1.0, "gpt-4.1+tools": 0.25}


def test_what_is_in_the_way_stays(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine\n")
    with pytest.raises(TouchstoneError, match="cannot be written"):
        synthesise(tmp_path / "out")
    (tmp_path / "m_synthetic_fixes.csv").mkdir()
    with pytest.raises(TouchstoneError, match=r"m_synthetic_fixes\.csv: is a folder"):
        synthesise(tmp_path, models={"m": 0.5}, force=True)
    synthesise(tmp_path, models={"x": 0.5})
    synthesise(tmp_path, models={"y": 0.5}, force=True)
    names = ["m_synthetic_fixes.csv", "out", "problems.csv", "x_synthetic_fixes.csv", "y_synthetic_fixes.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "out").read_text() == "mine\n"
