"""The key `retention` of the configuration: how long a deployment keeps what grows with every run."""

from pydantic import BaseModel, ConfigDict, Field

_MAX_DAYS = 36_500


class RetentionSettings(BaseModel):
    """What the scheduled job `retention` keeps. Null keeps everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runs_days: float | None = Field(None, gt=0, le=_MAX_DAYS)
    """Days after which a finished run is removed from Dagster's history."""
    snapshots: int | None = Field(None, ge=1, le=1_000_000)
    """How many snapshots are kept besides the pinned ones."""
    cache_days: float | None = Field(None, gt=0, le=_MAX_DAYS)
    """Days after which a cached validation report that no run has used is removed."""
