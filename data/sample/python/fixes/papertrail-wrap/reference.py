"""Text in lines of limited width."""


def wrap(text, width):
    """The words of a text in lines of at most `width` characters. A longer word is cut."""
    if width < 1:
        raise ValueError("the width must be at least 1")
    lines = []
    words = text.split()
    line = ""
    while words:
        word = words[0]
        if not line and len(word) <= width:
            line = words.pop(0)
        elif line and len(line) + 1 + len(word) <= width:
            line += " " + words.pop(0)
        elif line:
            lines.append(line)
            line = ""
        else:
            lines.append(word[:width])
            words[0] = word[width:]
    if line:
        lines.append(line)
    return lines
