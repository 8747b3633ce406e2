"""One validator per file, each implementing `touchstone.validation.protocol.Validator`.

A validator turns a tree into a report. Isolation belongs in `touchstone.validation.sandbox`; what a report means for a
fix belongs in `touchstone.validation.judging.verdicts`.
"""
