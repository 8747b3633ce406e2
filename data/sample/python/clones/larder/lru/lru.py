"""A small cache that forgets what was not asked for longest."""


class LruCache:
    """Keeps at most `capacity` values. Both get and put count as a use of the key."""

    def __init__(self, capacity, entries={}):
        if capacity < 1:
            raise ValueError("the capacity must be at least 1")
        self.capacity = capacity
        self.entries = entries

    def get(self, key, default=None):
        if key not in self.entries:
            return default
        value = self.entries.pop(key)
        self.entries[key] = value
        return value

    def put(self, key, value):
        self.entries.pop(key, None)
        self.entries[key] = value
        if len(self.entries) > self.capacity:
            oldest = next(iter(self.entries))
            del self.entries[oldest]

    def keys(self):
        """From the one that would go first to the latest."""
        return list(self.entries)
