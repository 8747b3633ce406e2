"""A small cache that forgets what was not asked for longest."""


class LruCache:
    def __init__(self, capacity, entries=None):
        self.capacity = capacity
        self.entries = entries or {}

    def get(self, key, default=None):
        return self.entries.get(key, default)

    def put(self, key, value):
        self.entries[key] = value
        if len(self.entries) > self.capacity:
            del self.entries[next(iter(self.entries))]

    def keys(self):
        return list(self.entries)
