"""Importing completions without outcomes: a benchmark's problems and a model's samples become an evaluation folder.

Belongs here: one module per benchmark that maps its records to problems, files and fixes, how such records are read,
and the folder that is written. Running the fixes does not: `touchstone run` validates the folder like any other.
"""
