"""Which item is with which worker. An item is in one place at a time and finishes once, whatever becomes of workers."""

from collections import Counter, deque

from touchstone.workers.protocol import TRIES

# A worker has its next item before it finishes one, so it never waits for the network.
_AT_ONCE = 2
# How often an item may come back, through no death of a worker, before it is given up.
_RETURNS = 10


class Assignments:
    """The items 0 to `count` - 1: waiting, with a worker, or finished.

    When a worker is lost, any of its items may have killed it, so each is tried again by a worker that does nothing
    else, after all others are done.

    >>> items = Assignments(3)
    >>> items.next_for("a"), items.next_for("a"), items.next_for("a"), items.next_for("b")
    (0, 1, None, 2)
    >>> items.finish(0), items.finish(0)
    (True, False)
    >>> items.lose("a"), items.next_for("b")
    ([], None)
    >>> items.finish(2), items.next_for("b"), items.next_for("b")
    (True, 1, None)
    """

    def __init__(self, count: int) -> None:
        self._waiting = deque(range(count))
        self._suspects: deque[int] = deque()
        self._held: dict[str, list[int]] = {}
        self._unfinished = set(range(count))
        self._deaths: Counter[int] = Counter()
        self._returns: Counter[int] = Counter()

    @property
    def finished(self) -> bool:
        """Whether every item is finished."""
        return not self._unfinished

    def next_for(self, worker: str) -> int | None:
        """The next item for a worker, which has it from now on; None if it has enough or there is none."""
        held = self._held.setdefault(worker, [])
        if len(held) >= _AT_ONCE or any(self._is_suspect(item) for item in held):
            return None
        if self._waiting:
            item = self._waiting.popleft()
        elif self._suspects and not held:
            item = self._suspects.popleft()
        else:
            return None
        held.append(item)
        return item

    def finish(self, item: int) -> bool:
        """Take a result of an item; False if there was one before, which is the one that counts."""
        self._drop(item)
        if item not in self._unfinished:
            return False
        self._unfinished.remove(item)
        return True

    def lose(self, worker: str) -> list[int]:
        """A worker has died. Returns the items that are given up, because it was not the first one they killed."""
        given_up = []
        for item in self._held.pop(worker, []):
            # The first time tells nothing but that it may be the one; after that, the worker did nothing else.
            self._deaths[item] += 1
            if self._deaths[item] <= TRIES:
                self._suspects.append(item)
            elif self.finish(item):
                given_up.append(item)
        return given_up

    def give_back(self, item: int) -> bool:
        """An item was not tried, through no fault of its own, and waits again; False if that happens all the time."""
        self._drop(item)
        self._returns[item] += 1
        if item in self._unfinished:
            (self._suspects if self._is_suspect(item) else self._waiting).appendleft(item)
        return self._returns[item] <= _RETURNS

    def _is_suspect(self, item: int) -> bool:
        return self._deaths[item] > 0

    def _drop(self, item: int) -> None:
        for held in self._held.values():
            if item in held:
                held.remove(item)
