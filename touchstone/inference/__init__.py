"""How certain a figure is: standard errors, confidence intervals, bootstrap, paired tests, detectable effects.

Functions here take arrays or frames of sums per independent unit (a problem, or a cluster of problems) and know nothing
of models, tiers or tables. Which figures exist, and their point estimates, belong in `touchstone.metrics`; which models
are compared with which, and the verdict on them, in `touchstone.comparison`.
"""
