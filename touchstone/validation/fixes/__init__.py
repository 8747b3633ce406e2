"""What a model wrote becomes changed files: code taken out of an answer, patches, search/replace blocks, whole files.

`apply_fix` is the way in. What the changed files are worth belongs in `judging`.
"""
