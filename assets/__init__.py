"""The Dagster assets, one file per stage: `ingest` -> `validation` -> `metrics`, `scores` -> `publish`.

Each asset is a thin call into `touchstone`; a formula or a parser does not belong here.
"""
