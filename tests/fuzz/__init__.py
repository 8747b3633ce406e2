"""Fuzzing: whatever bytes a file has, reading it gives a result or one clear line; never a traceback, never a hang.

`targets` has one function per reader, `corpus/` small files to start from, `engine` mutates them, `run` is the command
behind `make fuzz`, and `test_fuzz` tries a few examples of each with every test.
"""
