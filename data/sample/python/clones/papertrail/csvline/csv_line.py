"""One line of CSV, without the csv module."""


def split_line(line, separator=","):
    """The cells of a line. A quoted cell may hold the separator; a doubled quote within it stands for one."""
    cells = []
    cell = ""
    quoted = False
    place = 0
    while place < len(line):
        sign = line[place]
        if sign == '"':
            quoted = not quoted
        elif sign == separator and not quoted:
            cells.append(cell)
            cell = ""
        else:
            cell += sign
        place += 1
    cells.append(cell)
    return cells


def join_cells(cells, separator=","):
    """The line, with quotes where they are needed."""
    return separator.join(_quoted(cell, separator) for cell in cells)


def _quoted(cell, separator):
    if separator in cell or '"' in cell:
        return '"' + cell.replace('"', '""') + '"'
    return cell
