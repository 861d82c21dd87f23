"""Text without its empty lines, of which a formatter puts two between functions."""


def packed(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line)
