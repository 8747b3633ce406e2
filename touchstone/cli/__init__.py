"""The `touchstone` command: options, tables on the terminal, progress displays and exit codes.

One module per group of commands, listed in `main`. Computing figures and writing files belongs in the other packages;
each command imports them when it runs, so that `touchstone --help` stays fast.
"""
