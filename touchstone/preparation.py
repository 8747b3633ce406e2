"""What happens before a run: check the configuration, write synthetic data where asked, look which files there are."""

from collections.abc import Sequence
from pathlib import Path

from touchstone.config import EvaluationConfig, load_config
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.synth import synthesise


def prepare(config_file: Path, output_dir: Path | None, only: Sequence[str]) -> Evaluation:
    """The evaluation, known to have a problems file and at least one model to evaluate."""
    config = load_config(config_file, output_dir)
    if config.generate_synthetic_data:
        _generate(config)
    evaluation = Evaluation(config, only=frozenset(only))
    models = require_models(evaluation)
    for model in only:
        if model not in models:
            raise TouchstoneError(f"--only {model}: no such model; there are: {', '.join(models)}")
    return evaluation


def require_models(evaluation: Evaluation) -> list[str]:
    """The models that can be evaluated; an error that says why where there is none, or no list of problems."""
    models = list(evaluation.discovery.sources)
    if evaluation.problems_csv is not None and not evaluation.problems_csv.is_file():
        raise TouchstoneError(f"{evaluation.problems_csv}: no such problems file; set 'problems_csv' in the config")
    if not models:
        raise TouchstoneError("; ".join(sorted(set(evaluation.discovery.refused.values()))))
    return models


def _generate(config: EvaluationConfig) -> None:
    """Write the synthetic files unless they are there already."""
    wanted = config.synthetic
    if any(config.fixes_dir.glob("*_synthetic_fixes.csv")):
        return
    synthesise(
        config.fixes_dir,
        problems=wanted.problems,
        iterations=wanted.iterations,
        seed=wanted.seed,
        models=wanted.models,
    )
