"""The `touchstone` command: arguments, tables on the screen, live progress and exit codes.

Figures and files are made elsewhere. Each command imports what it needs when it runs, so that the fast ones stay fast.
"""
