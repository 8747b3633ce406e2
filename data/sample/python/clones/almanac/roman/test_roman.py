from roman import from_roman, to_roman


def test_added_signs():
    assert [to_roman(number) for number in (1, 3, 6, 1666)] == ["I", "III", "VI", "MDCLXVI"]


def test_four_and_nine_are_short():
    assert [to_roman(number) for number in (4, 9)] == ["IV", "IX"]


def test_short_forms_of_tens_and_hundreds():
    assert [to_roman(number) for number in (40, 90, 400, 900)] == ["XL", "XC", "CD", "CM"]


def test_there_and_back():
    assert [number for number in range(1, 4000) if from_roman(to_roman(number)) != number] == []


def test_zero_is_refused():
    try:
        refused = to_roman(0)
    except ValueError:
        refused = "refused"
    assert refused == "refused"
