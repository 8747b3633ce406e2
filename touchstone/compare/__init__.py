"""Two evaluations side by side: inputs, pairs of models, regressions, verdicts, the gate and its report.

What one evaluation says about itself belongs in `metrics`.
"""
