"""Adapters for lm-evaluation-harness: the logged samples, and the results file beside them."""
