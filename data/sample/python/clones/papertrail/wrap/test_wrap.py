from wrap import wrap


def test_short_text_is_one_line():
    assert wrap("to be or not", 20) == ["to be or not"]


def test_lines_are_filled():
    assert wrap("the quick brown fox jumps", 10) == ["the quick", "brown fox", "jumps"]


def test_a_line_may_be_exactly_full():
    assert wrap("abc def ghi", 7) == ["abc def", "ghi"]


def test_nothing_to_wrap():
    assert wrap("  \n ", 5) == []


def test_a_long_word_is_cut():
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("a bcdefgh i", 3) == ["a", "bcd", "efg", "h i"]
