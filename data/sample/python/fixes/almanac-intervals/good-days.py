def merge(intervals):
    """The same days in as few intervals as possible, in order. Neighbouring days join."""
    days = {day for first, last in intervals for day in range(first, last + 1)}
    merged = []
    for day in sorted(days):
        if merged and day == merged[-1][1] + 1:
            merged[-1][1] = day
        else:
            merged.append([day, day])
    return merged
