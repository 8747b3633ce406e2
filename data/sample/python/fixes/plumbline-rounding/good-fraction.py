def round_half_even(numerator, denominator):
    """The whole number nearest to the fraction; of two equally near ones the even one."""
    from fractions import Fraction

    if denominator <= 0:
        raise ValueError("the denominator must be positive")
    return round(Fraction(numerator, denominator))
