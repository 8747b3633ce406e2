"""The key `retention` of the configuration: how long is kept what grows with every run."""

from pydantic import Field

from touchstone.config.file import Section

_MAX_DAYS = 36_500


class RetentionSettings(Section):
    """What is kept of earlier runs, by `touchstone run` and the scheduled job `retention`. Null keeps everything."""

    runs_days: float | None = Field(90, gt=0, le=_MAX_DAYS)
    """Days after which a finished run is removed from Dagster's history."""
    snapshots: int | None = Field(400, ge=1, le=1_000_000)
    """How many snapshots are kept besides the pinned ones."""
    cache_days: float | None = Field(365, gt=0, le=_MAX_DAYS)
    """Days after which a cached validation report that no run has used is removed."""
