from moving_average import mean, moving_average, smoothed


def test_every_window_has_a_mean():
    assert moving_average([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]


def test_one_window_over_everything():
    assert moving_average([2, 4, 6], 3) == [4.0]


def test_window_of_one():
    assert moving_average([5, 7], 1) == [5.0, 7.0]


def test_too_few_values():
    assert moving_average([1, 2], 3) == []


def test_smoothed_keeps_the_length():
    assert smoothed([2, 4, 6], 2) == [2.0, 3.0, 5.0]
    assert mean([]) is None
