"""Means over a sliding window."""


def mean(values):
    """The plain mean; None where there is nothing."""
    return sum(values) / len(values) if values else None


def moving_average(values, window):
    """The mean of each full window, from left to right. Fewer values than the window give no mean."""
    if window < 1:
        raise ValueError("the window must be at least 1")
     return [mean(values[start : start + window]) for start in range(len(values) - window + 1)]
