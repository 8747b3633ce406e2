"""Which item is with which worker: every item ends once, whatever becomes of the workers."""

from hypothesis import given
from hypothesis import strategies as st

from touchstone.workers import TRIES
from touchstone.workers.dask import Assignments

EVENTS = st.lists(st.tuples(st.sampled_from(["next", "finish", "lose", "give back", "late"]), st.sampled_from("abc")))


@given(st.integers(0, 12), EVENTS)
def test_whatever_happens_every_item_ends_once(count: int, events: list[tuple[str, str]]) -> None:
    items = Assignments(count)
    held: dict[str, list[int]] = {worker: [] for worker in "abc"}
    ended: list[int] = []
    for event, worker in events + [("next", "a"), ("finish", "a")] * (count + 1) * 3:
        if event == "next":
            item = items.next_for(worker)
            assert item not in [each for some in held.values() for each in some], "an item is in one place at a time"
            held[worker] += [] if item is None else [item]
        elif event == "lose":
            ended += items.lose(worker)
            held[worker] = []
        elif event == "late":
            assert not ended or not items.finish(ended[-1]), "the first result counts"
        elif held[worker]:
            item = held[worker].pop(0)
            if event == "finish":
                assert items.finish(item)
                ended.append(item)
            elif event == "give back":
                items.give_back(item)
    for worker in "bc":
        ended += items.lose(worker)
    while (item := items.next_for("a")) is not None:
        assert items.finish(item)
        ended.append(item)
    assert sorted(ended) == list(range(count)) and items.finished


def test_an_item_that_kills_every_worker_is_given_up_and_takes_no_other_with_it() -> None:
    items = Assignments(3)
    assert [items.next_for("a"), items.next_for("a")] == [0, 1]
    assert items.lose("a") == []
    assert items.next_for("b") == 2, "what killed no worker comes first"
    assert items.next_for("b") is None, "what may kill a worker waits until that does nothing else"
    assert items.finish(2)
    for _ in range(TRIES - 1):
        assert items.next_for("b") == 0
        assert items.next_for("b") is None
        assert items.lose("b") == []
        assert items.next_for("b") == 1
        assert items.finish(1) or True
    assert items.next_for("b") == 0
    assert items.lose("b") == [0]
    assert items.finished


def test_an_item_that_is_never_tried_is_reported() -> None:
    items = Assignments(1)
    answers = []
    for _ in range(20):
        assert items.next_for("a") == 0
        answers.append(items.give_back(0))
    assert answers[0] and not answers[-1]
