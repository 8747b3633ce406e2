from bank_rounding import round_half_even, share


def test_nearest():
    assert [round_half_even(number, 10) for number in (11, 14, 16, 19)] == [1, 1, 2, 2]


def test_halves_go_to_even():
    assert [round_half_even(number, 2) for number in (1, 3, 5, 7)] == [0, 2, 2, 4]


def test_negative_halves_go_to_even():
    assert [round_half_even(number, 2) for number in (-1, -3, -5)] == [0, -2, -2]


def test_large_amounts_are_exact():
    assert round_half_even(2 * 10**18 + 1, 2) == 10**18
    assert round_half_even(10**18 + 1, 1) == 10**18 + 1


def test_shares():
    assert share(250, 10) == 25
    assert share(1050, 5) == 52
