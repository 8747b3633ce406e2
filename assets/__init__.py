"""The Dagster assets, one file per stage: `ingest` -> `validation` -> `metrics` -> `publish`.

Each asset is a thin call into `touchstone`; a formula or a parser does not belong here.
"""
