"""Tests of the manual: links resolve, snippets are valid, the README is short, the site builds without
warnings.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from microguard.schemas.specification.read import build_specification, read_specification

ROOT = Path(__file__).parents[2]
#: Files of the manual in the repository; generated pages have no links.
PAGES = sorted([
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "sdc/README.md",
      "sdc/suppression/README.md", "schemas/README.md", "pipelines/README.md", "pipelines/series/README.md",
      "jobs/README.md", "tests/README.md", "deploy/README.md", "deploy/CHANGELOG.md")),
])  # fmt: skip
EXAMPLES = sorted((ROOT / "docs/examples").rglob("*.toml"))
WORDS = 900
#: Names of code and file suffixes that look like keys.
_CODE = ("series.kind",)
_SUFFIXES = (".json", ".py", ".csv", ".parquet")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_EXTERNAL = re.compile(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?:https?:)?//', re.IGNORECASE)
#: Lines that complete a snippet of a partial specification.
RECORDS = {
    "release": {"name": "part", "k": 3},
    "input": {"path": "part.csv"},
    "variables": {
        "person": {"role": "unit"},
        "region": {"role": "region"},
        "sex": {"role": "quasi_identifier", "kind": "nominal"},
    },
    "publish": {"path": "lake", "evidence": "evidence"},
}
CELLS = RECORDS | {
    "variables": {
        "business": {"role": "unit"},
        "turnover": {"role": "sensitive", "kind": "numeric"},
        **{name: {"role": "other"} for name in ("region", "section", "division", "size")},
    }
}
METADATA = """   <SEPARATOR> ","
region 5
  <RECODEABLE>
  <TOTCODE> "Total"
value 5
  <NUMERIC>
  <DECIMALS> 0
status
  <STATUS>
"""


def snippets(language: str) -> list[Any]:
    """Return page and text of every block in a language."""
    return [
        pytest.param(text, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, (kind, text) in enumerate(_BLOCK.findall(page.read_text(encoding="utf-8")))
        if kind == language
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as MkDocs and code platforms make them."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower() for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_page_lead_to_files_and_headings(page: Path) -> None:
    broken = []
    for target, anchor in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if ":" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        generated = path == ROOT / "docs/reference/commands.md"
        if not generated and (not path.exists() or (anchor and anchor not in anchors(path))):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("text", snippets("toml"))
def test_toml_snippet_is_a_specification_or_a_part_of_one(text: str, tmp_path: Path) -> None:
    content = tomllib.loads(text)
    if "project" in content:
        pytest.skip("a pyproject.toml")
    for name in ("activities.csv", "nace.csv"):
        (tmp_path / name).write_text("division,section\nC10,C\n")
    if "metadata" in content.get("input", {}):
        (tmp_path / "t.rda").write_text(METADATA)
        (tmp_path / "t.tab").write_text("Total,3,S\nA,1,U\nB,2,S\n")
        (tmp_path / "part.toml").write_text(text)
        read_specification(tmp_path / "part.toml")
        return
    base = {} if "variables" in content and "release" in content else CELLS if "table" in content else RECORDS
    build_specification(
        {key: {**base.get(key, {}), **content.get(key, {})} for key in {**base, **content}}, tmp_path
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_a_specification_and_pages_show_it_unchanged(path: Path) -> None:
    name = read_specification(path).release.name
    for page in (ROOT / "docs").rglob("*.md"):
        for kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if (
                kind == "toml"
                and tomllib.loads(text).get("release", {}).get("name") == name
                and text[0] == "#"
            ):
                assert text == path.read_text(encoding="utf-8"), page.name


@pytest.mark.parametrize("text", snippets("python"))
def test_python_snippet_compiles(text: str) -> None:
    compile(text, "snippet", "exec")


@pytest.mark.parametrize("name", ["README.md", "docs/quickstart.md"])
def test_first_python_snippet_prints_the_output_of_the_page(name: str) -> None:
    blocks = _BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    number = next(number for number, (kind, _) in enumerate(blocks) if kind == "python")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(blocks[number][1], name, "exec"), {})
    assert printed.getvalue() == blocks[number + 1][1]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CHANGELOG.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_keys_that_a_page_names_are_keys_of_the_specification(page: Path) -> None:
    schema = json.loads((ROOT / "schemas/specification.schema.json").read_text(encoding="utf-8"))
    key = re.compile(rf"`((?:{'|'.join(schema['properties'])})(?:\.[a-z_]+)+)(?=`| = )")
    named = set(key.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))))
    unknown = {
        name
        for name in named
        if not name.endswith(_SUFFIXES + _CODE) and not _is_key(schema, name.split("."))
    }
    assert not unknown, f"{page.name} names keys that do not exist"


def _is_key(schema: dict[str, Any], parts: list[str]) -> bool:
    """Return whether a path of names leads to a key; below a key with free names every path does."""
    node = schema
    for part in parts:
        known = node.get("properties")
        if known is None:
            return True
        if part not in known:
            return False
        options = [known[part], *known[part].get("anyOf", ())]
        names = [option["$ref"].rpartition("/")[2] for option in options if "$ref" in option]
        node = schema["$defs"][names[0]] if names else {}
    return True


def test_citation_names_the_version_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_readme_has_at_most_900_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= WORDS


def test_tables_of_benchmark_pages_name_command_machine_version_and_date() -> None:
    for page in (ROOT / "docs/benchmarks").glob("*.md"):
        lines = page.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            begins = line.startswith("|") and not lines[number - 1].startswith("|")
            if not begins or page.stem == "index" or "cannot" in line or "does not" in line:
                continue
            words = ("*Command:*", "*Machine:*", "*Version:*", "*Date:*")
            assert all(word in lines[number - 2] for word in words), f"{page.name}:{number + 1}"


def test_site_builds_without_warnings_and_loads_nothing_from_other_servers(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    command += ["--config-file", str(ROOT / "deploy/docs/mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if _EXTERNAL.search(page.read_text(encoding="utf-8"))] == []
