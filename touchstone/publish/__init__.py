"""Results for people: summary, warehouse and SQL, charts, report, dashboard, exports, the data dictionary.

Everything here is derived from finished tables. Computing a figure belongs in `metrics` or `compare`, deciding where
tables are kept in `storage`, and printing to a terminal in `cli`.
"""
