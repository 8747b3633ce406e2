"""Invented problems and fixes, to try the pipeline before there is real data. Same arguments, same bytes.

Only what a fixes file needs to state an outcome is invented: who passed, how often, on which problem. Richer
invented data, with costs and scores, is `data/sample`. Reading files back belongs in `touchstone.ingest`.

The bytes must not depend on the machine or on the version of numpy. So a stream gives nothing but uniform
numbers, and these meet nothing but sums, products and comparisons, which every machine rounds alike.
"""

import hashlib
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from touchstone.config import EvaluationConfig, SyntheticSettings
from touchstone.errors import TouchstoneError
from touchstone.names import check_name

Floats = NDArray[np.float64]

# How far a model's own view of what is hard departs from the view that all models share.
_OWN_VIEW = 0.35
# Above this the hardest problems would be all that is left to fail.
_STEEPEST = 4
# What one tier more does to the odds of passing.
_ODDS_PER_TIER = 1.5
_OID_DIGITS = 4


def synthesise(
    output: Path,
    *,
    problems: int = 10,
    iterations: int = 20,
    seed: int = 7,
    models: Mapping[str, float] | None = None,
    tiers: int = 1,
    force: bool = False,
) -> list[Path]:
    """Write `problems.csv` and one `<model>_synthetic_fixes.csv` per model into `output`; return their paths.

    `models` maps a name to its mean chance of passing in the first tier; each further tier is somewhat
    better. Either all files are written or none, and existing ones are replaced only with `force`.
    """
    rates = SyntheticSettings.model_validate({}).models if models is None else models
    _check_arguments(rates, problems=problems, iterations=iterations, tiers=tiers)
    names = {model: f"{model}_synthetic_fixes.csv" for model in rates}
    _check_targets([output / name for name in ("problems.csv", *names.values())], force=force)

    oids = _oids(problems)
    hardness = _stream(seed, "").random(problems)
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".synthetic-", dir=output) as scratch:
            drafts = [Path(scratch, "problems.csv")]
            _problems(oids).write_csv(drafts[0])
            for model, rate in rates.items():
                drafts.append(Path(scratch, names[model]))
                stream = _stream(seed, model)
                chances = _chances(rate, _difficulty(hardness, stream))
                _fixes(oids, _outcomes(chances, iterations, tiers, stream)).write_csv(drafts[-1])
            return [draft.replace(output / draft.name) for draft in drafts]
    except OSError as error:
        raise TouchstoneError(f"{output}: cannot be written ({error.strerror or error})") from None


def parse_models(items: list[str]) -> dict[str, float]:
    """The models of the command line, each as NAME=RATE.

    >>> parse_models(["gemini=0.77", "claude=.7"])
    {'gemini': 0.77, 'claude': 0.7}
    """
    rates: dict[str, float] = {}
    for item in items:
        name, equals, text = item.rpartition("=")
        if not equals:
            raise TouchstoneError(f"model {item!r} has no rate: write NAME=RATE, for example gemini=0.77")
        check_name(name, "model")
        if name in rates:
            raise TouchstoneError(f"model '{name}' is given twice")
        try:
            rate = float(text)
        except ValueError:
            raise TouchstoneError(f"model '{name}': the rate {text!r} is no number") from None
        rates[name] = _check_rate(name, rate)
    return rates


def _check_arguments(rates: Mapping[str, float], **counts: int) -> None:
    for what, count in counts.items():
        if count < 1:
            raise TouchstoneError(f"{what} must be at least 1, got {count}")
    if not rates:
        raise TouchstoneError("give at least one model")
    for model, rate in rates.items():
        _check_rate(check_name(model, "model"), rate)


def _check_rate(model: str, rate: float) -> float:
    if not 0 <= rate <= 1:
        raise TouchstoneError(f"model '{model}': the rate must be from 0 to 1, got {rate}")
    return rate


def _check_targets(targets: list[Path], *, force: bool) -> None:
    for target in targets:
        if target.is_dir():
            raise TouchstoneError(f"{target}: is a folder, so no file of that name can be written")
        if target.exists() and not force:
            raise TouchstoneError(f"{target}: exists already; pass --force to write over it")


def _stream(seed: int, model: str) -> Generator:
    """Each model's own source of chance, so that one model more or less changes nothing for the others."""
    digest = hashlib.sha256(f"{seed}/{model}".encode()).digest()
    return Generator(PCG64(int.from_bytes(digest, "big")))


def _difficulty(hardness: Floats, stream: Generator) -> Floats:
    """A place between 0 (easiest) and 1 (hardest) for every problem, evenly spread, as one model sees it."""
    view = hardness + _OWN_VIEW * stream.random(hardness.size)
    places = np.empty(hardness.size)
    places[np.argsort(view, kind="stable")] = (np.arange(hardness.size) + 0.5) / hardness.size
    return places


def _chances(rate: float, difficulty: Floats) -> Floats:
    """Every problem's chance of passing, with `rate` as their exact mean.

    A power of an evenly spread number follows a Beta(1 / power, 1). The power is as steep as the rate allows
    without a chance outside [0, 1]: a good model fails on few problems but often there, a bad one mirrors it.
    """
    if rate < 0.5:
        return rate * _spread(rate, 1 - difficulty)
    return 1 - (1 - rate) * _spread(1 - rate, difficulty)


def _spread(mean: float, place: Floats) -> Floats:
    """Weights of mean 1 that rise with the place, where `mean` times a weight stays at most 1."""
    power = _STEEPEST if mean * (_STEEPEST + 1) <= 1 else math.floor(1 / mean) - 1
    weights = np.ones(place.size)
    for _ in range(power):
        weights *= place
    return weights / (math.fsum(weights) / place.size)


def _outcomes(chances: Floats, iterations: int, tiers: int, stream: Generator) -> list[NDArray[np.bool_]]:
    """Who passed, problem by problem, per tier. A file's first tier is the same however many follow."""
    outcomes = []
    for _ in range(tiers):
        outcomes.append(stream.random((chances.size, iterations)) < chances[:, np.newaxis])
        chances = _ODDS_PER_TIER * chances / (1 + (_ODDS_PER_TIER - 1) * chances)
    return outcomes


def _oids(problems: int) -> pl.Series:
    digits = max(_OID_DIGITS, len(str(problems)))
    numbers = pl.Series("oid", np.arange(1, problems + 1)).cast(pl.String)
    return ("problem_" + numbers.str.zfill(digits)).rename("oid")


def _problems(oids: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"oid": oids, "filename": oids + "/main.tf"})


def _fixes(oids: pl.Series, outcomes: list[NDArray[np.bool_]]) -> pl.DataFrame:
    problems, iterations = outcomes[0].shape
    attempts = pl.DataFrame(
        {
            "oid": oids.gather(np.repeat(np.arange(problems), iterations)),
            "iteration_id": np.tile(np.arange(1, iterations + 1), problems),
        }
    )
    parts = [
        attempts.with_columns(
            *([pl.lit(f"T{tier}").alias("tier")] if len(outcomes) > 1 else []),
            plausible_fix=pl.Series(passed.ravel()),
        )
        for tier, passed in enumerate(outcomes)
    ]
    return pl.concat(parts)


def generate_if_asked(config: EvaluationConfig) -> None:
    """Write the synthetic files if the configuration asks for them and they are not there yet."""
    wanted = config.synthetic
    if not config.generate_synthetic_data or any(config.fixes_dir.glob("*_synthetic_fixes.csv")):
        return
    synthesise(
        config.fixes_dir,
        problems=wanted.problems,
        iterations=wanted.iterations,
        seed=wanted.seed,
        models=wanted.models,
    )
