"""What a PromQL expression names, without a parser: the vector selectors."""

import re

_TOKEN = re.compile(r"""
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<range>\[[^\]]*\])
  | (?P<grouping>\b(?:by|without|on|ignoring|group_left|group_right)\s*
        \([^)]*\))
  | (?P<function>\b[a-z_]+[a-z0-9_]*\s*\()
  | (?P<aggregation>\b(?:sum|min|max|avg|count|topk|bottomk|quantile)\b)
  | (?P<word>\b(?:and|or|unless|offset|bool|by|without)\b)
  | (?P<duration>\b[0-9]+[smhdwy]\b)
  | (?P<number>\b[0-9]+(?:\.[0-9]+)?\b)
  | (?P<selector>[a-zA-Z_:][a-zA-Z0-9_:]*
        (?:\s*\{(?:[^}"]|"(?:[^"\\]|\\.)*")*\})?)
""", re.VERBOSE)


def selectors(expr: str) -> list[str]:
    """Each vector selector, with its matchers, in the order of the text."""
    return [match["selector"] for match in _TOKEN.finditer(expr)
            if match.lastgroup == "selector"]


def metric_name(selector: str) -> str:
    """The name without the matchers."""
    return re.match(r"[a-zA-Z0-9_:]+", selector)[0]
