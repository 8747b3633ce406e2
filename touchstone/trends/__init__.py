"""Figures over a series of snapshots: lines of figures, the nights on which one changed, and why.

`figures` has the headline figures, `series` their lines night by night and the method that finds changes in them,
`causes` what two snapshots say about themselves that differs, and `blame` whose change a case is due to.
Storing snapshots belongs in `touchstone.storage`, the comparison of two of them in `touchstone.comparison`.
"""
