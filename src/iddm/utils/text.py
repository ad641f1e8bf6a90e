"""Text of a file, as it may be shown."""


def printable(text: str) -> str:
    """Without what could steer a terminal or begin a new line, and not too long."""
    return "".join(c if c.isprintable() else "�" for c in text)[:500]
