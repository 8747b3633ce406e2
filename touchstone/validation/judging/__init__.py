"""From reports to verdicts: the tests that decide, blocks that a fix removed, and results that are final."""
