"""Roman numerals from 1 to 3999."""

SIGNS = [
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
]


def to_roman(number):
    """The numeral, in the short form: 4 is IV."""
    if number < 0 or number > 3999:
        raise ValueError(f"no numeral for {number}")
    numeral = ""
    for value, sign in SIGNS:
        while number >= value:
            numeral += sign
            number -= value
    return numeral


def from_roman(numeral):
    """The number."""
    return sum(dict((sign, value) for value, sign in SIGNS)[sign] for sign in numeral)
