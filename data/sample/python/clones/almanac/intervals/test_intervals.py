from intervals import covered, merge


def test_separate_intervals_stay():
    assert merge([[10, 12], [1, 3]]) == [[1, 3], [10, 12]]


def test_overlapping_intervals_join():
    assert merge([[1, 5], [4, 9], [20, 21]]) == [[1, 9], [20, 21]]


def test_neighbours_join():
    assert merge([[1, 2], [3, 4]]) == [[1, 4]]


def test_an_interval_within_another():
    assert merge([[1, 10], [2, 3]]) == [[1, 10]]
    assert merge([[1, 10], [2, 3], [9, 12]]) == [[1, 12]]


def test_covered_days_count_once():
    assert covered([[1, 10], [2, 3], [5, 5]]) == 10


def test_nothing():
    assert merge([]) == []
    assert covered([]) == 0
