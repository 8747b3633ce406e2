"""What happens before a run or the UI: check configuration and port, write synthetic data, look for the files."""

import errno
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path

from touchstone.config import EvaluationConfig, load_config, require_baseline_model
from touchstone.errors import TouchstoneError
from touchstone.evaluation import Evaluation
from touchstone.ingest.synthetic import synthesise
from touchstone.progress import report_step


def prepare(config_file: Path, output_dir: Path | None, only: Sequence[str]) -> Evaluation:
    """The evaluation, known to have a problems file and at least one model to evaluate."""
    config = load_config(config_file, output_dir)
    generate_if_asked(config)
    report_step("looking for fixes files")
    evaluation = Evaluation(config, only=frozenset(only))
    require_only(evaluation, only, "--only")
    return evaluation


def require_only(evaluation: Evaluation, only: Iterable[str], option: str) -> None:
    """Refuse a name that is not among the models that can be evaluated."""
    models = require_models(evaluation)
    for model in only:
        if model not in models:
            raise TouchstoneError(f"{option} {model}: no such model; there are: {', '.join(models)}")


def require_models(evaluation: Evaluation) -> list[str]:
    """The models that can be evaluated; an error that says why where there is none, or no list of problems."""
    models = list(evaluation.discovery.sources)
    if evaluation.problems_csv is not None and not evaluation.problems_csv.is_file():
        raise TouchstoneError(f"{evaluation.problems_csv}: no such problems file; set 'problems_csv' in the config")
    if not models:
        raise TouchstoneError("; ".join(sorted(set(evaluation.discovery.refused.values()))))
    require_baseline_model(evaluation.config.comparison.baseline_model, models)
    return models


def require_free_port(host: str, port: int) -> None:
    """Refuse a port that another program listens on."""
    with socket.socket() as probe:
        # As the server does: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            busy = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            reason = "is in use" if busy else f"cannot be used ({error})"
            raise TouchstoneError(f"port {port} on {host} {reason}; choose another with --port") from None


def generate_if_asked(config: EvaluationConfig) -> None:
    """Write the synthetic files where the configuration asks for them, unless they are there already."""
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
