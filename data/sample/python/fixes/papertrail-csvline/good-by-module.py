def split_line(line, separator=","):
    """The cells of a line. A quoted cell may hold the separator; a doubled quote within it stands for one."""
    import csv

    return next(csv.reader([line], delimiter=separator), []) or [""]
