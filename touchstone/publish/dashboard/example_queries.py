"""The example queries of `docs/queries.md`, to choose from."""

import re

from touchstone.locations import queries_page

_EXAMPLE = re.compile(r"^## (?P<title>[^\n]+)\n(?:(?!^## ).)*?^```sql\n(?P<sql>.*?)^```", re.MULTILINE | re.DOTALL)


def example_queries() -> dict[str, str]:
    """SQL by title, in the order of the page.

    >>> next(iter(example_queries()))
    'Leaderboard'
    """
    page = queries_page().read_text(encoding="utf-8")
    return {found["title"].strip(): found["sql"].strip() for found in _EXAMPLE.finditer(page)}
