"""The dashboard behind `touchstone explore`: one run or snapshot, filtered, down to a single attempt.

Pages without scripts: the server draws each from its address, so that every state of the dashboard can be sent as a
link. `pages` has the pages, `lists` their rows, `selection` what an address means and the tables under its filters,
`markup` the HTML of tables and attempts, `server` who may ask. Figures under a filter come from the functions in
`metrics` that a run uses; there is no second formula here. Charts belong in `publish.charts`, one attempt in
`publish.attempt_detail`, SQL in `publish.query`.
"""
