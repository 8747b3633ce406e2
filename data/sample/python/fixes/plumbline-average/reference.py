"""Means over a sliding window."""


def mean(values):
    """The plain mean; None where there is nothing."""
    return sum(values) / len(values) if values else None


def moving_average(values, window):
    """The mean of each full window, from left to right. Fewer values than the window give no mean."""
    if window < 1:
        raise ValueError("the window must be at least 1")
    return [mean(values[start : start + window]) for start in range(len(values) - window + 1)]


def smoothed(values, window):
    """As many means as values: the first ones over what there is so far."""
    return [mean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]
