"""Adapter for logs of Inspect AI: `log` reads one, `source` opens both forms, `samples` and `scores` have its rules."""
