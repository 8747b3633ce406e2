from lru import LruCache


def test_the_oldest_goes_first():
    cache = LruCache(2, {})
    for key in "abc":
        cache.put(key, key.upper())
    assert cache.keys() == ["b", "c"]
    assert cache.get("a") is None


def test_reading_is_a_use():
    cache = LruCache(2, {})
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.keys() == ["a", "c"]


def test_two_caches_share_nothing():
    first = LruCache(3)
    second = LruCache(3)
    first.put("a", 1)
    assert second.keys() == []
    assert second.get("a", "missing") == "missing"


def test_given_entries_are_used():
    assert LruCache(3, {"a": 1, "b": 2}).get("b") == 2


def test_writing_again_keeps_one():
    cache = LruCache(2, {})
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    assert cache.keys() == ["b", "a"]
    assert cache.get("a") == 3
