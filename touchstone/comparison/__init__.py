"""Comparing two evaluations: inputs, pairs of models, regressions, verdicts, the gate and the report.

Belongs here: anything that needs a baseline and a current evaluation, or a model a and a model b. Figures of a single
evaluation belong in `metrics`, tests and intervals in `inference`, and drawing on the terminal in `cli`.
"""
