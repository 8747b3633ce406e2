"""From attempts to outcomes: targets, applied fixes, validators, the sandbox, the report cache and verdicts.

Everything that decides whether one attempt passed belongs here. Reading the input files belongs in `touchstone.ingest`;
figures over many outcomes belong in `touchstone.metrics`.
"""
