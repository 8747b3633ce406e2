"""Adapter for promptfoo: `results` reads its output, `names` and `stats` hold its names of tests and its totals."""
