"""What the tests read in Markdown: links, headings, blocks, tables."""

import re

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, with the line in which each begins."""
    return [(text.count("\n", 0, found.start(2)) + 1, found[2])
            for found in _FENCE.finditer(text) if found[1] == language]


def without_blocks(text: str) -> str:
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Targets, those of pictures included."""
    return _LINK.findall(without_blocks(text))


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", without_blocks(text))


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
            for title in titles}


def rows(text: str, pattern: str) -> list[list[str]]:
    """The cells of the table rows whose first cell matches `pattern`."""
    found = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in found if re.match(pattern, cells[0])]
