"""The configuration that files and folders imply, for commands that are given paths instead of one."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from touchstone.config import EvaluationConfig, load_config
from touchstone.config.file import expanded, original_config, read_config_file, refuse_system_folder
from touchstone.errors import TouchstoneError
from touchstone.locations import address_of, in_hub_cache, input_location, is_mirror
from touchstone.storage.files import replacing
from touchstone.vocabulary import RESULTS_FOLDER

CONFIG_NAME = "evaluation_config.json"
# The files that fixes are about, if a folder of this name is beside them.
CLONES_FOLDER = "clones"

_USUAL_KS = (1, 5, 10)


def implied_settings(
    paths: Sequence[Path], output_dir: Path | None = None, score: str | None = None
) -> tuple[Path, dict[str, object]]:
    """The place of the implied configuration, and its content.

    A folder `clones` beside the files has what fixes are applied to. Results go into a folder beside the files, or into
    the folder if one is given. The configuration is written there, too, to be edited and used with `--config`.
    Results of files in object storage or in Hugging Face's cache go into the current folder.
    """
    if any(map(is_mirror, paths)):
        from touchstone.storage.input_mirror import fetch

        fetch(paths)
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise TouchstoneError(f"{missing}: no such file or folder")
    # A file stays under its own name, which that of the file it is a link to need not be.
    places = [path.resolve() if path.is_dir() else path.parent.resolve() / path.name for path in paths]
    root = Path(os.path.commonpath([place if place.is_dir() else place.parent for place in places]))
    if any(map(is_mirror, paths)) and not is_mirror(root):
        raise TouchstoneError("the paths have no folder in common; name files of one bucket, or local ones")
    beside = Path.cwd() if is_mirror(root) or in_hub_cache(root) else root
    output = expanded(output_dir).absolute() if output_dir is not None else beside / RESULTS_FOLDER
    settings: dict[str, object] = {
        "fixes_dir": address_of(root) or os.path.relpath(root, output),
        "inputs": sorted({place.relative_to(root).as_posix() for place in places}),
        "output_dir": ".",
    }
    clones = root / CLONES_FOLDER
    if clones.is_dir() and not is_mirror(clones):
        settings["clones_dir"] = os.path.relpath(clones, output)
    return output / CONFIG_NAME, settings | ({"score": score} if score else {})


def implied_config(
    paths: Sequence[Path], score: str | None = None, given: EvaluationConfig | None = None
) -> EvaluationConfig:
    """The configuration itself, for commands that write nothing; with the formats and columns of a `given` one."""
    place, settings = implied_settings(paths, score=score)
    root = (place.parent / input_location(str(settings["fixes_dir"]))).resolve()
    clones = {"clones_dir": root / CLONES_FOLDER} if "clones_dir" in settings else {}
    config = EvaluationConfig.model_validate(settings | {"fixes_dir": root, "output_dir": place.parent} | clones)
    if given is None:
        return config
    own = {name: getattr(given, name) for name in ("formats", "adapters", "columns", "problem_key", "junit_pattern")}
    return config.model_copy(update=own | {"input_limits": given.input_limits, "score": score or given.score})


def config_with_results(
    paths: Sequence[Path], output_dir: Path | None = None, score: str | None = None
) -> tuple[Path, bool]:
    """The configuration file of a run of these paths, and whether it is new.

    A folder that has a configuration is evaluated by that. A configuration from an earlier run of the same paths stays
    as it is, with whatever was edited in it.
    """
    own = paths[0] / CONFIG_NAME
    own = own if own.is_file() else original_config(paths[0], CONFIG_NAME) or own
    # The paths in a configuration are relative to it, so one in object storage is not used.
    if len(paths) == 1 and own.is_file() and not is_mirror(own) and output_dir is None and score is None:
        return _without_adapters(own), False
    place, settings = implied_settings(paths, output_dir, score)
    if place.is_file():
        known = read_config_file(place)
        if all(known.get(key) == value for key, value in settings.items()):
            return _without_adapters(place), False
    refuse_system_folder("--output-dir", place.parent)
    write_config(place, settings)
    return place, True


def _without_adapters(place: Path) -> Path:
    """A configuration that was found, not named: it may have come with the results, so it must not run Python."""
    if read_config_file(place).get("adapters"):
        raise TouchstoneError(f"{place}: names adapters, which are programs; if you trust it, use --config {place}")
    return place


def write_config(place: Path, settings: dict[str, object]) -> None:
    """Write a configuration file."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with replacing(place) as scratch:
            scratch.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise TouchstoneError(
            f"{place}: cannot be written ({error.strerror}); choose another folder with --output-dir"
        ) from None


def is_config_file(path: Path) -> bool:
    """Whether a file is a configuration rather than results."""
    try:
        return path.suffix in (".json", ".toml") and "fixes_dir" in read_config_file(path)
    except TouchstoneError:
        return False


@contextmanager
def removed_on_error(place: Path) -> Iterator[None]:
    """Remove a new configuration, and its folder if nothing else is in it, if the inputs turn out to be unusable."""
    try:
        yield
    except TouchstoneError:
        place.unlink(missing_ok=True)
        with suppress(OSError):
            place.parent.rmdir()
        raise


def with_fitting_k(place: Path, most_attempts: int) -> EvaluationConfig:
    """Add the k values for which there are attempts to a new configuration file, and load it.

    >>> fitting_ks(1), fitting_ks(3), fitting_ks(20)
    ([1], [1, 3], [1, 5, 10])
    """
    write_config(place, read_config_file(place) | {"k_values": fitting_ks(most_attempts)})
    return load_config(place)


def fitting_ks(most_attempts: int) -> list[int]:
    """The usual values of k up to the number of attempts, and that number if it is small."""
    usual = [k for k in _USUAL_KS if k <= max(1, most_attempts)]
    return [*usual, most_attempts] if 1 < most_attempts < _USUAL_KS[1] else usual
