"""Data Docs of Great Expectations, rendered as a page that works offline.

The original pages load styles, scripts and pictures from the network, which pages in an evidence folder must
not do. These are removed and replaced by a few styles in the page; the text is unchanged.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.view import DefaultJinjaPageView

_LOADED = (
    re.compile(r"<link\b[^>]*>"),
    re.compile(r"<script\b[^>]*>.*?</script>", re.DOTALL),
    re.compile(r"<img\b[^>]*>"),
    re.compile(r"url\(['\"]?[a-z]+:[^)]*\)"),
    re.compile(r"</?a\b[^>]*>"),
    re.compile(r"<p>[^<]*newsletter.*?</p>", re.DOTALL),
)
_STYLE = """<style>
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; color: #23283a; }
 table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
 .modal, nav, .navbar, input[type=radio] { display: none; }
 .fa-check-circle::before { content: "\\2714"; color: #1d7a4f; }
 .fa-times::before { content: "\\2718"; color: #b3261e; }
</style></head>"""


def write_data_docs(result: ExpectationSuiteValidationResult, path: Path) -> None:
    """Render the results of a suite as one self-contained page.

    Parameters
    ----------
    result : ExpectationSuiteValidationResult
        Its results have no values of records.
    path : Path
    """
    from great_expectations.render.renderer import ValidationResultsPageRenderer

    page = _view().render(ValidationResultsPageRenderer().render(result))
    for loaded in _LOADED:
        page = loaded.sub("", page)
    path.write_text(page.replace("</head>", _STYLE, 1), encoding="utf-8")


@cache
def _view() -> DefaultJinjaPageView:
    """Return Great Expectations' templates, compiled once for all suites of a run."""
    from great_expectations.render.view import DefaultJinjaPageView

    return DefaultJinjaPageView()
