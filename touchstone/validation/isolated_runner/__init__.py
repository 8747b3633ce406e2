"""Python fixes under test: the tests run in one sandbox, the candidate's code in another, and only plain values pass.

`runner` collects and runs the tests, `candidate` holds the code that is tested, `conversation` is what they speak over
a socket, `values` says what can be spoken, and `errors` how exceptions get across. All of it runs inside sandboxes and
uses the standard library alone; who starts it is `touchstone.validation.validators.python`.
"""
