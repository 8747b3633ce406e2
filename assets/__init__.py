"""The Dagster assets, one file per stage: `ingest` -> `validation` -> `metrics`, `scores` -> `publish`.

Each asset is a thin call into `touchstone`; formulas and parsers do not belong here.
"""
