"""A small cache that forgets what was not asked for longest."""

from collections import OrderedDict


class LruCache:
    """Keeps at most `capacity` values. Both get and put count as a use of the key."""

    def __init__(self, capacity, entries=()):
        if capacity < 1:
            raise ValueError("the capacity must be at least 1")
        self.capacity = capacity
        self.entries = OrderedDict(entries)

    def get(self, key, default=None):
        if key not in self.entries:
            return default
        self.entries.move_to_end(key)
        return self.entries[key]

    def put(self, key, value):
        self.entries[key] = value
        self.entries.move_to_end(key)
        while len(self.entries) > self.capacity:
            self.entries.popitem(last=False)

    def keys(self):
        """From the one that would go first to the latest."""
        return list(self.entries)
