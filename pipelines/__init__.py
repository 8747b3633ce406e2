"""The Dagster code location: how the assets are put together, scheduled, watched and launched."""
