"""Synthetic problems and fixes, to try the pipeline before there is real data. Same arguments, same bytes.

Only outcomes are generated: which attempts pass, on which problem. Sample data with costs and scores is `data/sample`.

The bytes must not depend on the machine or the version of numpy. So only uniform random numbers are drawn, and only
sums, products and comparisons are applied to them, which IEEE 754 rounds the same way everywhere.
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
from touchstone.storage.files import check_model_name, file_key

Floats = NDArray[np.float64]

# How much a model's own difficulty of a problem deviates from the one that all models share.
_OWN_DIFFICULTY = 0.35
# A higher power would leave only the hardest problems to fail.
_MAX_POWER = 4
# Factor on the odds of passing from one tier to the next.
_ODDS_PER_TIER = 1.5
_OID_DIGITS = 4
_MAX_ROWS = 100_000_000


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

    `models` maps a name to its mean probability of passing in the first tier; each further tier is somewhat better.
    Writes all files or none, and replaces existing ones only with `force`.
    """
    rates = SyntheticSettings.model_validate({}).models if models is None else models
    _check_arguments(rates, problems=problems, iterations=iterations, tiers=tiers)
    names = {model: f"{file_key(model)}_synthetic_fixes.csv" for model in rates}
    _check_targets([output / name for name in ("problems.csv", *names.values())], force=force)

    oids = _oids(problems)
    shared_difficulty = _generator(seed, "").random(problems)
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".synthetic-", dir=output) as scratch:
            drafts = [Path(scratch, "problems.csv")]
            pl.DataFrame({"oid": oids, "filename": oids + "/main.tf"}).write_csv(drafts[0])
            for model, rate in rates.items():
                drafts.append(Path(scratch, names[model]))
                generator = _generator(seed, model)
                probabilities = _pass_probabilities(rate, _difficulty(shared_difficulty, generator))
                _fixes(oids, _outcomes(probabilities, iterations, tiers, generator)).write_csv(drafts[-1])
            return [draft.replace(output / draft.name) for draft in drafts]
    except OSError as error:
        raise TouchstoneError(f"{output}: cannot be written ({error.strerror or error})") from None


def parse_models(items: list[str]) -> dict[str, float]:
    """Parse the models of the command line, each given as NAME=RATE.

    >>> parse_models(["gemini=0.77", "claude=.7"])
    {'gemini': 0.77, 'claude': 0.7}
    """
    rates: dict[str, float] = {}
    for item in items:
        name, equals, text = item.rpartition("=")
        if not equals:
            raise TouchstoneError(f"model {item!r} has no rate: use NAME=RATE, for example gemini=0.77")
        check_model_name(name)
        if name in rates:
            raise TouchstoneError(f"model '{name}' is given twice")
        try:
            rate = float(text)
        except ValueError:
            raise TouchstoneError(f"model '{name}': the rate {text!r} is not a number") from None
        rates[name] = _check_rate(name, rate)
    return rates


def _check_arguments(rates: Mapping[str, float], **counts: int) -> None:
    for what, count in counts.items():
        if count < 1:
            raise TouchstoneError(f"{what} must be at least 1, got {count}")
    rows = math.prod(counts.values())
    if rows > _MAX_ROWS:
        raise TouchstoneError(f"{' × '.join(counts)} is {rows:,} rows per model; at most {_MAX_ROWS:,} are written")
    if not rates:
        raise TouchstoneError("give at least one model")
    for model, rate in rates.items():
        _check_rate(check_model_name(model), rate)


def _check_rate(model: str, rate: float) -> float:
    if not 0 <= rate <= 1:
        raise TouchstoneError(f"model '{model}': the rate must be from 0 to 1, got {rate}")
    return rate


def _check_targets(targets: list[Path], *, force: bool) -> None:
    for target in targets:
        if target.is_dir():
            raise TouchstoneError(f"{target}: is a folder; remove it or choose another output folder")
        if target.exists() and not force:
            raise TouchstoneError(f"{target}: already exists; use --force to overwrite it")


def _generator(seed: int, model: str) -> Generator:
    """A random generator per model, so that adding or removing a model does not change the others."""
    digest = hashlib.sha256(f"{seed}/{model}".encode()).digest()
    return Generator(PCG64(int.from_bytes(digest, "big")))


def _difficulty(shared_difficulty: Floats, generator: Generator) -> Floats:
    """The difficulty of every problem for one model: ranks, evenly spread between 0 (easiest) and 1 (hardest)."""
    view = shared_difficulty + _OWN_DIFFICULTY * generator.random(shared_difficulty.size)
    places = np.empty(shared_difficulty.size)
    places[np.argsort(view, kind="stable")] = (np.arange(shared_difficulty.size) + 0.5) / shared_difficulty.size
    return places


def _pass_probabilities(rate: float, difficulty: Floats) -> Floats:
    """The probability of passing each problem, with `rate` as their exact mean.

    A power of a uniform number has a Beta(1 / power, 1) distribution. The power is as high as the rate allows without
    a probability outside [0, 1]: a good model fails often on few problems, a bad one passes often on few.
    """
    if rate < 0.5:
        return rate * _weights(rate, 1 - difficulty)
    return 1 - (1 - rate) * _weights(1 - rate, difficulty)


def _weights(mean: float, place: Floats) -> Floats:
    """Weights of mean 1 that increase with `place`, such that `mean` times a weight is at most 1."""
    power = _MAX_POWER if mean * (_MAX_POWER + 1) <= 1 else math.floor(1 / mean) - 1
    weights = np.ones(place.size)
    for _ in range(power):
        weights *= place
    return weights / (math.fsum(weights) / place.size)


def _outcomes(probabilities: Floats, iterations: int, tiers: int, generator: Generator) -> list[NDArray[np.bool_]]:
    """Outcomes per tier, problems by iterations. The first tier is the same however many follow."""
    outcomes = []
    for _ in range(tiers):
        outcomes.append(generator.random((probabilities.size, iterations)) < probabilities[:, np.newaxis])
        probabilities = _ODDS_PER_TIER * probabilities / (1 + (_ODDS_PER_TIER - 1) * probabilities)
    return outcomes


def _oids(problems: int) -> pl.Series:
    digits = max(_OID_DIGITS, len(str(problems)))
    numbers = pl.Series("oid", np.arange(1, problems + 1)).cast(pl.String)
    return ("problem_" + numbers.str.zfill(digits)).rename("oid")


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
            *([pl.lit(f"T{tier}").alias("tier")] if len(outcomes) > 1 else []), plausible_fix=pl.Series(passed.ravel())
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
        config.fixes_dir, problems=wanted.problems, iterations=wanted.iterations, seed=wanted.seed, models=wanted.models
    )
