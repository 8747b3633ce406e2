"""Means over a sliding window."""


def moving_average(values, window):
    """The mean of each full window, from left to right."""
    return [sum(values[start : start + window]) / window for start in range(len(values) - window + 1)]
