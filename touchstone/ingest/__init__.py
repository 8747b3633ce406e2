"""From files to rows: one reader per input format, and quarantine for every row that is refused.

Belongs here: anything that turns bytes into the tables `problems`, `attempts`, `sources` and `quarantine`, and the
generator of synthetic inputs. A row passes through `discovery` (which files there are), `csv_rows` or `adapters` (bytes
to text cells), `cells` (text to values), and `problems` or `attempts` (which rows are accepted). Files
in which every row is accepted take `clean_files`, many at once. Running a fix belongs in `validation`; figures belong
in `metrics`.
"""
