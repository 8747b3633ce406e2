"""From files to tables: one reader per input format, and quarantine for every row that is refused.

The path of a row: `discovery` finds the file, `text` turns its bytes into cells, `cells` turns cells into
values, `problems` and `fixes` decide what is accepted. Judging a fix belongs in `touchstone.validation`.
"""
