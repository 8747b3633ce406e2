def split_line(line, separator=","):
    """The cells of a line. A quoted cell may hold the separator; a doubled quote within it stands for one."""
    cells = []
    cell = ""
    quoted = False
    place = 0
    while place < len(line):
        sign = line[place]
        if sign == '"':
            if quoted and line[place + 1] == '"':
                cell += sign
                place += 1
            else:
                quoted = not quoted
        elif sign == separator and not quoted:
            cells.append(cell)
            cell = ""
        else:
            cell += sign
        place += 1
    cells.append(cell)
    return cells
