"""The Dagster code location: definitions, job, schedule, sensor, resources and launching."""
