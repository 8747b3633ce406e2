"""The figures: from attempts and outcomes to scores, pass@k, reliability, cost and routing.

One idea per file, frames in and frames out: each table of the graph has a function that takes the tables it reads, in
order, and then its settings. Undefined is null. Confidence intervals and tests belong in `touchstone.inference`,
comparisons of models and of runs in `touchstone.comparison`, columns in `touchstone.tables.fields`.
"""
