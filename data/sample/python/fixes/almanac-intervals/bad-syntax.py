def merge(intervals):
    """The same days in as few intervals as possible, in order. Neighbouring days join."""
    merged = []
    for first, last in sorted(intervals)
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged
