"""The output folder: tables and their stamps, atomic writes, publishing, snapshots and their history.

What a table contains is decided in `ingest`, `validation`, `metrics` and `compare`.
"""
