"""Text in lines of limited width."""


def wrap(text, width):
    """The words of a text in lines of at most `width` characters. A longer word is cut."""
    lines = []
    words = text.split()
    line = ""
    while words:
        word = words[0]
        if len(word) > width:
            words[0:1] = [word[:width] + word[width:]]
        elif not line:
            line = words.pop(0)
        elif len(line) + 1 + len(word) <= width:
            line += " " + words.pop(0)
        else:
            lines.append(line)
            line = ""
    return lines + [line] if line else lines
