def split_line(line, separator=","):
    """The cells of a line."""
    return [cell.strip('"').replace('""', '"') for cell in line.split(separator)]
