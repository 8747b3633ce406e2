"""A problem's files on disk: found, opened without following links, hashed, copied for the sandbox; never written."""
