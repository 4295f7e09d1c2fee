"""Hooks of MkDocs: take pages from READMEs, generate the page of the commands, and resolve links.

A link in a page is relative to its file in the repository, so that it also works outside of the manual. Here
it becomes a link between pages. The text of a link to a file that is no page is kept without the link.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
#: Pages that are files outside of docs, or parts of one: from the heading after the # on, or up to it.
PAGES = {
    "methods/index.md": "sdc/README.md",
    "methods/suppression.md": "sdc/suppression/README.md",
    "methods/kernels.md": "sdc/kernels/README.md",
    "reference/specification.md": "schemas/README.md#Reference of the specification",
    "developing/schemas.md": "schemas/README.md",
    "operations.md": "deploy/README.md",
    "weakness.md": "SECURITY.md",
    "changes.md": "deploy/CHANGELOG.md",
    "developing/contributing.md": "CONTRIBUTING.md",
    "developing/pipelines.md": "pipelines/README.md",
    "developing/series.md": "pipelines/series/README.md",
    "developing/jobs.md": "jobs/README.md",
    "developing/tests.md": "tests/README.md",
}
_ALSO = {"README.md": "index.md", "docs/examples": "tutorial.md"}
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs."""
    for uri, source in PAGES.items():
        files.append(File.generated(config, uri, content=_content(source)))
    files.append(File.generated(config, "reference/commands.md", content=commands()))
    style = ROOT / "deploy/docs/manual.css"
    files.append(File.generated(config, style.name, content=style.read_text(encoding="utf-8")))
    return files


def _content(source: str) -> str:
    """Return the text of a file, of a part of it, or of everything before the part of another page."""
    path, _, heading = source.partition("#")
    text = (ROOT / path).read_text(encoding="utf-8")
    if heading:
        return re.sub(r"^#(#+ )", r"\1", text[text.index(f"## {heading}") :], flags=re.MULTILINE)
    parts = [each.partition("#")[2] for each in PAGES.values() if each.startswith(f"{path}#")]
    return text[: text.index(f"## {parts[0]}")] if parts else text


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Resolve the links of a page outside of its code."""
    uri = page.file.src_uri
    folder = posixpath.dirname(PAGES.get(uri, f"docs/{uri}").partition("#")[0])
    pages = {source.partition("#")[0]: target for target, source in reversed(PAGES.items())} | _ALSO

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target or ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        found = pages.get(path)
        if found is None and path.startswith("docs/"):
            found = (
                path.removeprefix("docs/") if files.get_file_from_path(path.removeprefix("docs/")) else None
            )
        if found is None and (ROOT / path).exists():
            return text
        return f"[{text}]({posixpath.relpath(found or target, posixpath.dirname(uri) or '.')}{anchor})"

    parts = _CODE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)


def commands() -> str:
    """Return the page of the commands, options and exit codes, from the table of the parser."""
    from microguard.jobs.verbs import VERBS
    from microguard.schemas import errors

    lines = ["# Commands and exit codes", "`microguard VERB --help` shows the same. In tables, `SPEC` is a "
             "release specification, and `RELEASE` the folder of a release.", ""]  # fmt: skip
    for verb in VERBS.values():
        lines += [f"## {verb.name}", f"{verb.purpose[0].upper()}{verb.purpose[1:]}.", ""]
        lines += ["```", *(f"microguard {example}" for example in verb.examples), "```", ""]
        lines += ["| argument | meaning |", "|---|---|"] if verb.arguments else []
        for argument in verb.arguments:
            value = argument.options.get("metavar", "")
            flags = (
                f"`{value}`"
                if argument.positional
                else ", ".join(f"`{each} {value}`" for each in argument.flags)
            )
            lines.append(f"| {flags.replace(' `', '`')} | {argument.options.get('help', '')} |")
        lines.append("")
    lines += ["## Exit codes", "| exit code | meaning |", "|---|---|", "| 0 | done |"]
    classes = (errors.SpecificationError, errors.InputRejected, errors.GateRefused, errors.ProtectionFailed)
    lines += [f"| {each.exit_code} | {(each.__doc__ or '').splitlines()[0]} |" for each in classes]
    lines += ["| 1 | anything else |", "| 130 | interrupted |", "",
              "On 2 to 5 nothing is published. A message names the key or object, what was expected, what "
              "was found, and what to do. It never contains a value of a record."]  # fmt: skip
    return "\n".join(lines) + "\n"
