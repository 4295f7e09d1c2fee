"""Render a page in Chromium at three widths, measure its geometry, and write a picture.

Each width is a separate frame, so that its media queries apply.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

WIDTHS = (380, 768, 1280)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
TALLEST = 9_000
"""Maximum height of a picture in pixels; lower parts of a page are measured, but not in the picture."""
GAP = 16
SECONDS = 120

_SHEET = """<!DOCTYPE html><meta charset="utf-8">
<body style="margin:0;display:flex;gap:{gap}px;background:#888">
{frames}<script>
const seen = [];
const wide = (frame, page) => [...page.querySelectorAll("body *")].filter(element => {{
  const box = element.getBoundingClientRect();
  if (!box.width || box.right <= frame.clientWidth + 1) return false;
  for (let up = element; up && up !== page.body; up = up.parentElement)
    if (["auto", "scroll", "hidden"].includes(page.defaultView.getComputedStyle(up).overflowX)) return false;
  return true;
}}).map(element => element.tagName + "." + element.className);
const squeezed = page => [...page.querySelectorAll("td, th")].filter(cell => {{
  const box = cell.getBoundingClientRect(), style = page.defaultView.getComputedStyle(cell);
  return cell.innerText.trim().length > 3 && box.width < 2.5 * parseFloat(style.fontSize) &&
    box.height > 2.5 * parseFloat(style.lineHeight);
}}).length;
const crossing = page => {{
  let count = 0;
  for (const svg of page.querySelectorAll("svg")) {{
    const frame = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("text")].map(text => text.getBoundingClientRect());
    boxes.forEach((a, i) => {{
      if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 ||
          a.bottom > frame.bottom + 1) count++;
      boxes.slice(i + 1).forEach(b => {{
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 2) count++;
      }});
    }});
  }}
  return count;
}};
onload = () => {{
  for (const frame of document.querySelectorAll("iframe")) {{
    const page = frame.contentDocument;
    frame.style.height = page.documentElement.scrollHeight + "px";
    seen.push({{width: frame.clientWidth, scrolls: page.documentElement.scrollWidth > frame.clientWidth,
                beyond: wide(frame, page), crossing: crossing(page), squeezed: squeezed(page),
                replaced: (page.body.innerText.match(/\\ufffd|\\$\\\\math/g) || []).length}});
  }}
  const told = document.createElement("script");
  told.type = "application/json"; told.id = "seen"; told.textContent = JSON.stringify(seen);
  document.body.append(told);
}};
</script>"""


@dataclass(frozen=True)
class Seen:
    """Measurements of a page at one width.

    Attributes
    ----------
    width : int
        Width of the window in pixels.
    scrolls : bool
        Whether the page is wider than the window.
    beyond : list of str
        Elements that extend beyond the window, and are not inside a scrolling element.
    crossing : int
        Number of overlapping or truncated texts of plots.
    squeezed : int
        Number of table cells with one letter per line.
    replaced : int
        Number of characters without a glyph, and of formulas that are not rendered.
    complaints : int
        Number of messages on the browser's console.
    """

    width: int
    scrolls: bool
    beyond: list[str]
    crossing: int
    squeezed: int
    replaced: int
    complaints: int


def browser() -> str | None:
    """Return the path of Chromium on this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def look(page: Path, picture: Path) -> list[Seen]:
    """Open a page at every width of `WIDTHS`, write `picture` (PNG), and return the measurements."""
    text = html.escape(page.read_text(encoding="utf-8"))
    frames = "".join(
        f'<iframe srcdoc="{text}" style="border:0;width:{width}px;flex:none;height:100px;background:#fff">'
        "</iframe>"
        for width in WIDTHS
    )
    sheet = picture.with_suffix(".html")
    sheet.write_text(_SHEET.format(gap=GAP, frames=frames), encoding="utf-8")
    across = sum(WIDTHS) + GAP * (len(WIDTHS) - 1)
    command = [
        browser() or NAMES[0],
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--enable-logging=stderr",
        f"--user-data-dir={picture.with_suffix('.profile')}",
        f"--window-size={across},{TALLEST}",
        f"--screenshot={picture}",
        "--dump-dom",
        sheet.absolute().as_uri(),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    shutil.rmtree(picture.with_suffix(".profile"), ignore_errors=True)
    sheet.unlink()
    told = re.search(r'<script type="application/json" id="seen">(.*?)</script>', answer.stdout, re.DOTALL)
    if told is None:
        raise AssertionError(f"the browser said nothing of {page}")
    complaints = answer.stderr.count("CONSOLE")
    return [Seen(**each, complaints=complaints) for each in json.loads(told.group(1))]
