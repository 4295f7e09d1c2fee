"""Native HTML elements for the pages of the workbench, which keyboards and screen readers support.

Text is set as text and attributes as attributes: the content of a file is never parsed as HTML or script.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

_VALUE = "(event) => emit(event.target.value)"
#: The browser redraws the page whenever the server changes any element, and each field then shows the value
#: that the server set last. Without this script, text that the user is typing would be lost.
_TYPED = "(event) => { element.props.value = event.target.value; }"


def text(tag: str, content: str, css: str = "", **attributes: Any) -> TextElement:
    """Create an element with text."""
    return _with(TextElement(tag=tag, text=content), css, attributes)


def box(tag: str, css: str = "", **attributes: Any) -> Element:
    """Create an element that contains others, as a context manager for these."""
    return _with(Element(tag), css, attributes)


def button(label: str, act: Callable[[], Any], css: str = "", **attributes: Any) -> TextElement:
    """Create a button."""
    return text("button", label, css, type="button", **attributes).on("click", lambda _: act(), args=[])


def select(
    label: str, options: Sequence[str] | Mapping[str, str], value: str, changed: Callable[[str], Any]
) -> Element:
    """Create a selection list; `options` may map values to their displayed labels."""
    shown = options if isinstance(options, Mapping) else {each: each for each in options}
    element = box("select", aria_label=label)
    with element:
        for each, words in shown.items():
            text("option", words, value=each)
    element.props["value"] = value
    return element.on("change", lambda event: changed(str(event.args)), js_handler=_VALUE)


def entry(label: str, value: str, changed: Callable[[str], Any], css: str = "", **attributes: Any) -> Element:
    """Create a text field; `changed` is called when the field loses focus or Enter is pressed."""
    given = {"autocomplete": "off", "spellcheck": "false", "aria_label": label} | attributes
    element = box("input", css, type="text", **given)
    element.props["value"] = value
    element.on("input", js_handler=_TYPED)
    return element.on("change", lambda event: changed(str(event.args)), js_handler=_VALUE)


def picture(svg: str, description: str) -> Element:
    """Show an SVG as an image, so that scripts in it do not run."""
    encoded = base64.b64encode(svg.encode()).decode()
    return box("img", "picture", src=f"data:image/svg+xml;base64,{encoded}", alt=description)


def table(
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Iterable[int] = (),
    heard: bool = False,
) -> None:
    """Show a table of texts whose first column names the rows; `numbers` are the numeric columns.

    With `heard`, only a screen reader reads the caption: a visible heading has the same words.
    """
    right = set(numbers)
    with box("div", "scroll", tabindex="0", role="group", aria_label=caption), box("table"):
        text("caption", caption, "heard" if heard else "")
        with box("thead"), box("tr"):
            for i, head in enumerate(heads):
                text("th", head, "number" if i in right else "", scope="col")
        with box("tbody"):
            for row in rows:
                with box("tr"):
                    for i, cell in enumerate(row):
                        css = "number" if i in right else ""
                        text("td", cell, css) if i else text("th", cell, css, scope="row")


def sentence(words: str) -> str:
    """Return words with a capital first letter, as the beginning of a sentence; names keep their spelling."""
    return words[:1].upper() + words[1:]


def plain_number(value: Any) -> str:
    """Format a number of the specification with all its digits; return other values as text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def number_of(written: str) -> float | int:
    """Return the finite number that the user entered.

    Raises
    ------
    ValueError
        If the text is not a finite number.
    """
    value = float(written)
    if not math.isfinite(value):
        raise ValueError
    return int(value) if value.is_integer() else value


def set_value(element: Element, value: str) -> None:
    """Show a value in a field or list, for example after an undo."""
    if element.props.get("value") != value:
        element.props["value"] = value


def _with(element: Any, css: str, attributes: Mapping[str, Any]) -> Any:
    for name, value in attributes.items():
        element.props[name.replace("_", "-")] = value
    if css:
        element.classes(css)
    return element
