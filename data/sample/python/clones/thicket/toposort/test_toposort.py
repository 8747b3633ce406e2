from toposort import order


def test_a_chain():
    assert order({"c": ["b"], "b": ["a"]}) == ["a", "b", "c"]


def test_tasks_without_needs_go_by_name():
    assert order({"b": [], "a": [], "c": []}) == ["a", "b", "c"]


def test_a_diamond_is_no_cycle():
    assert order({"d": ["b", "c"], "b": ["a"], "c": ["a"]}) == ["a", "b", "c", "d"]


def test_a_cycle_is_refused():
    try:
        found = order({"a": ["b"], "b": ["a"]})
    except ValueError:
        found = "a cycle"
    assert found == "a cycle"


def test_nothing():
    assert order({}) == []
