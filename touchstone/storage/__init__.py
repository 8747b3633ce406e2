"""The output folder: tables and their stamps, atomic writes, publishing, snapshots and their history.

The content of tables is decided in `ingest`, `validation`, `metrics` and `compare`.
"""
