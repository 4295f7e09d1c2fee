"""Print the section of a version in the change log: release_notes.py VERSION [--upgrade].

With ``--upgrade`` only the summary and what to read before an upgrade.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHANGELOG = Path(__file__).with_name("CHANGELOG.md")
_UPGRADE, _NEXT = "**Read this before you upgrade**", "\n\n**"


def release_notes(text: str, version: str, *, upgrade: bool = False) -> str:
    """Return the section of a version; ValueError if there is none."""
    sections = dict(section.partition("\n")[::2] for section in text.split("\n## ")[1:])
    if version not in sections:
        raise ValueError(f"{version}: expected a version of the change log, one of {', '.join(sections)}.")
    notes = sections[version].strip()
    if upgrade:
        summary, _, rest = notes.partition(_UPGRADE)
        notes = f"{summary}{_UPGRADE}{rest.partition(_NEXT)[0]}" if rest else summary
    return f"# microguard {version}\n\n{notes.strip()}\n"


if __name__ == "__main__":
    try:
        words = [word for word in sys.argv[1:] if word != "--upgrade"]
        text = CHANGELOG.read_text(encoding="utf-8")
        print(release_notes(text, *words, upgrade="--upgrade" in sys.argv), end="")
    except (TypeError, ValueError) as error:
        sys.exit(f"release_notes.py VERSION [--upgrade]: {error}")
