"""The figures: one file per idea, each a function from frames to frames."""
