"""What a model wrote becomes changed files: code taken out of an answer, patches, search/replace blocks, whole files.

`apply_fix` is the way in. What a fix may change belongs in `policy`; what the changed files are worth, in `judging`.
"""
