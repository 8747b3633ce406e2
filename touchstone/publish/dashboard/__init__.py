"""The dashboard behind `touchstone explore`: one run or snapshot, filtered, down to a single attempt.

Belongs here: what only the dashboard needs. `app` is the marimo notebook and only lays out; the other modules are plain
functions that need no browser. Figures under a filter come from the functions in `metrics` that a run uses; there is no
second formula here. Charts belong in `publish.charts`, one attempt in `publish.attempt_detail`, SQL in `publish.query`.
"""
