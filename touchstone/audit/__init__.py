"""Whether a figure can be defended: the problems, the passes, people's rulings, and what two sides have in common.

Tables made from finished outcomes. Nothing here changes a verdict.
"""
