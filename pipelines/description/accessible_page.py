"""Make a page accessible: a list of contents, and captions and scopes for all tables.

A heading `h2` gets an anchor, and the list of contents replaces the element ``<nav></nav>``. A table without
a caption gets the text of the heading above it, for screen readers. A header cell is of its column.
"""

from __future__ import annotations

import re

_HEADING = re.compile(r"<h2>(?P<text>.*?)</h2>", re.DOTALL)
_PIECE = re.compile(
    r"<h[23](?: [^>]*)?>(?P<heading>.*?)</h[23]>|<table[^>]*>(?P<caption>\s*<caption)?"
    r"|<th(?=[ >])(?P<scope>[^>]*scope=)?",
    re.DOTALL,
)
_TAG = re.compile(r"<[^>]+>")


def accessible_page(html: str) -> str:
    """Return the page with contents, captions and scopes; nothing else is changed."""
    titles: list[str] = []

    def anchored(match: re.Match[str]) -> str:
        titles.append(match["text"])
        return f'<h2 id="part-{len(titles)}">{match["text"]}</h2>'

    html = _HEADING.sub(anchored, html)
    items = "".join(
        f'<li><a href="#part-{number}">{_TAG.sub("", title)}</a></li>'
        for number, title in enumerate(titles, 1)
    )
    nav = f'<nav aria-label="Contents"><ul>{items}</ul></nav>' if titles else ""
    return _with_captions(html.replace("<nav></nav>", nav, 1))


def _with_captions(html: str) -> str:
    """Give each table the caption of the heading above it, and each header cell a scope."""
    heading = "Table"

    def completed(match: re.Match[str]) -> str:
        nonlocal heading
        found = match.group()
        if match["heading"] is not None:
            heading = _TAG.sub("", match["heading"]).strip()
            return found
        if found.startswith("<table"):
            caption = "" if match["caption"] else f'<caption class="heard">{heading}</caption>'
            return f"{found}{caption}"
        return found if match["scope"] else f'<th scope="col"{found[3:]}'

    return _PIECE.sub(completed, html)
