"""From a model's answer to changed files: code in fences, patches, search/replace blocks, whole files.

`apply_fix` is the way in. Judging the changed files belongs in `judging`.
"""
