from csv_line import join_cells, split_line


def test_plain_cells():
    assert split_line("a,b,c") == ["a", "b", "c"]


def test_empty_cells_are_kept():
    assert split_line(",b,") == ["", "b", ""]
    assert split_line("") == [""]


def test_a_separator_in_quotes():
    assert split_line('"Smith, Ada",36') == ["Smith, Ada", "36"]
    assert split_line('36,"Smith, Ada"') == ["36", "Smith, Ada"]
    assert split_line('"a;b";c', ";") == ["a;b", "c"]


def test_doubled_quotes_are_one():
    assert split_line('"say ""hello""",2') == ['say "hello"', "2"]


def test_an_empty_quoted_cell():
    assert split_line('"",b') == ["", "b"]


def test_there_and_back():
    cells = ["plain", "with, comma", 'with "quotes"', '"', ""]
    assert split_line(join_cells(cells)) == cells
