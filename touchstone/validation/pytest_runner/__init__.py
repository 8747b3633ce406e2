"""Runs a problem's tests with real pytest, in one sandboxed process that tests and fix share.

`worker` keeps pytest imported and configured and forks once per job; `plugin` turns pytest's hooks into lines on the
`channel`; `options` drops the settings that would escape; `controls` puts calls of the `recorder` into the tests, so
that a forged pass shows; `watching` notices a fix that looks at them. All of it runs in the sandbox. Starting it and
reading its lines belongs in `touchstone.validation.validators.python`.
"""
