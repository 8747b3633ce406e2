def round_half_even(numerator, denominator):
    """The whole number nearest to the fraction; of two equally near ones the even one."""
    if denominator <= 0:
        raise ValueError("the denominator must be positive")
    whole, rest = divmod(numerator, denominator)
    if 2 * rest > denominator:
        whole += 1
    return whole
