"""From attempts to verdicts: what decided an attempt, how it ended, and how much that means."""
