"""Text in lines of limited width."""


def wrap(text, width):
    """The words of a text in lines of at most `width` characters. A longer word is cut."""
    lines = []
    for word in text.split():
        while len(word) > width:
            lines.append(word[:width])
            word = word[width:]
        if lines and len(lines[-1]) + 1 + len(word) < width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
