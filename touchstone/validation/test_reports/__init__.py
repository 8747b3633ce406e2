"""The reports of other people's test runners: one module per format, each from text to `results.SuiteResults`.

The text comes from a process that ran a fix, so a parser takes time proportional to its length, and a report that is
cut off or contradicts itself is refused with a `ReportFormatError`. Comparing a report with the exit code, and with
the tests that a problem expects, belongs in `validators.command` and `expected_tests`.
"""
