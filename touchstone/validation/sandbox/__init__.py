"""Running untrusted code: resource limits, isolation backends, the probe that picks one, and warm workers.

What to run, and how to read its output, belongs in `touchstone.validation.validators`.
"""
