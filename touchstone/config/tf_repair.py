"""The configuration of TF_repair_evaluator as ours. It is known by its key `results_dir`, which ours never has.

Its paths are relative to the folder in which its scripts are started: the one above `evaluation`, where the file is.
Its `output_dir` takes the outcomes and its `results_dir` the figures; here both are in one folder.
"""

from pathlib import Path
from typing import Any

_RESULTS, _OUTPUT, _PROBLEMS = "results_dir", "output_dir", "problems_csv"
_FOLDER = "evaluation"


def translate_settings(path: Path, settings: dict[str, Any]) -> tuple[dict[str, Any], Path, tuple[str, ...]]:
    """The settings under our names, the folder that their paths are relative to, and what to tell the user."""
    base = path.parent.absolute()
    if not isinstance(settings.get(_RESULTS), str):
        return settings, base, ()
    base = next((place.parent for place in (base, base.parent) if place.name == _FOLDER), base)
    results, outcomes = settings[_RESULTS], settings.get(_OUTPUT)
    translated = {key: value for key, value in settings.items() if key != _RESULTS} | {_OUTPUT: results}
    known = [Path("problems", "problems.csv"), *([Path(outcomes, "problems.csv")] if isinstance(outcomes, str) else [])]
    problems = next((place for place in known if (base / place).is_file()), None)
    # Synthetic fixes bring their own problems.
    if problems and _PROBLEMS not in settings and not settings.get("generate_synthetic_data"):
        translated[_PROBLEMS] = str(problems)
    unused = f"; nothing is written to {outcomes}" if outcomes not in (None, results) else ""
    return translated, base, (f"{path}: results_dir ({results}) is taken as output_dir{unused}",)


def original_config(folder: Path, name: str) -> Path | None:
    """The configuration that TF_repair_evaluator keeps in its folder `evaluation`, if this is its folder."""
    from touchstone.config.file import read_config_file
    from touchstone.errors import TouchstoneError

    place = folder / _FOLDER / name
    try:
        return place if place.is_file() and _RESULTS in read_config_file(place) else None
    except TouchstoneError:
        return None
