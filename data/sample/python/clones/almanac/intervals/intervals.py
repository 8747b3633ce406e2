"""Spans of days, each a list of its first and its last day."""


def length(interval):
    """How many days an interval has, both ends included."""
    first, last = interval
    return last - first + 1


def merge(intervals):
    """The same days in as few intervals as possible, in order. Neighbouring days join."""
    merged = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = last
        else:
            merged.append([first, last])
    return merged


def covered(intervals):
    """How many days are in at least one interval."""
    return sum(length(interval) for interval in merge(intervals))
