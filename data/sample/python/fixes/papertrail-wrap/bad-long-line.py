"""Text in lines of limited width."""


def wrap(text, width):
    """The words of a text in lines of at most `width` characters. A longer word has its own line."""
    if width < 1:
        raise ValueError("the width must be at least 1")
    lines = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return lines
