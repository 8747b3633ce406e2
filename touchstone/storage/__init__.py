"""The output folder: tables and their stamps, atomic writes, publishing, snapshots and their history.

What is in a table belongs in `ingest`, `validation`, `metrics` and `compare`.
"""
