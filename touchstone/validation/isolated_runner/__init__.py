"""Runs Python tests in one sandbox and the candidate's code in another; only plain values pass between the two.

`sides` divides a problem's files. `runner` collects and runs the tests and `candidate` serves the code under test. They
talk through `rpc`: `values` encodes plain values, `exceptions` encodes exceptions, and `references` stands in for
everything else. All but `sides` runs in sandboxes and uses only the standard library. Starting the two sides belongs in
`touchstone.validation.validators.python`.
"""
