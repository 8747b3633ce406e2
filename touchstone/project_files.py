"""Files of the project that are not Python: the one place that knows where they are.

A wheel carries them in `touchstone/project`; in a checkout they are at the top of the repository and in `data/sample`.
"""

from importlib import resources
from pathlib import Path

SAMPLE_NAME = "evaluation_config.json"

_PACKAGED = Path(str(resources.files("touchstone"))) / "project"
_CHECKOUT = Path(__file__).parents[1]


def is_installed() -> bool:
    """Whether this is an installed package rather than a checkout (or an editable install of one)."""
    return (_PACKAGED / "dagster.yaml").is_file()


def dagster_settings() -> Path:
    """The `dagster.yaml` of the default Dagster home."""
    return _project() / "dagster.yaml"


def sample_folder() -> Path:
    """The sample of recorded outcomes: `problems.csv`, `<model>_fixes.csv` and a configuration."""
    return _PACKAGED / "sample" if is_installed() else _CHECKOUT / "data" / "sample"


def sample_config() -> Path:
    """The configuration of the sample."""
    return sample_folder() / SAMPLE_NAME


def sample_output() -> Path | None:
    """Where results of the sample go: the sample's own setting in a checkout, never inside an installation."""
    return Path.cwd() / "touchstone_sample" if is_installed() else None


def commented_config() -> Path:
    """The configuration that `touchstone init` writes, with comments."""
    return _PACKAGED / "evaluation_config.toml"


def queries_page() -> Path:
    """The page of example queries, `docs/queries.md`."""
    return _PACKAGED / "queries.md" if is_installed() else _CHECKOUT / "docs" / "queries.md"


def _project() -> Path:
    return _PACKAGED if is_installed() else _CHECKOUT
