"""The Dagster assets, one step per stage: `stages` makes them, `metadata` is what the UI shows of them.

Each asset is a thin call into `touchstone`; formulas and parsers do not belong here.
"""
