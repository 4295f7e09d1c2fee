"""Tests of the table of a refusal: it lists each failure once and each cause once."""

from __future__ import annotations

import json

import pytest
from microguard.jobs.command import run_command
from microguard.schemas.errors import Failure, GateRefused, merged_lines, refusal_text

from tests.jobs.endings import replace_verbs

ACCEPT = '[quality] accept = { max_unique_published = "REASON, BY WHOM" }'
EIGHTEEN = tuple(
    Failure(f"unique_published of v{i}", f"share of records unique with v{i}", "0.5", "at most 0.01",
            "protect the column", ACCEPT) for i in range(18)
)  # fmt: skip
THREE = (
    Failure("determined of a", "variables that a determines", "1", "at most 0", "name it",
            '[publish] accept_dependencies = ["a"]'),
    Failure("determined of b", "variables that b determines", "2", "at most 0", "name it",
            '[publish] accept_dependencies = ["b"]'),
    Failure("information_loss", "information loss", "0.123", "at most 0.1", "raise effort"),
)  # fmt: skip


def test_refusal_text_names_each_failure_and_each_remedy_once() -> None:
    lines = refusal_text("Refused.", (*EIGHTEEN, *EIGHTEEN[:2], *THREE)).splitlines()
    assert lines[0] == "Refused."
    assert lines[1].split() == ["what", "found", "limit"]
    assert sum("unique with" in line for line in lines) == 18
    assert sum("To do: protect the column." in line for line in lines) == 1
    assert lines.count(f"    {ACCEPT}") == 1
    assert '    [publish] accept_dependencies = ["a", "b"]' in lines
    assert len(lines) == 2 + 18 + 2 + 2 + 2 + 2
    assert len({line.index("at most") for line in lines if "at most" in line}) == 1


def test_merged_lines_keeps_the_limit_that_satisfies_all_failures() -> None:
    lines = ["[quality] max_t = 0.3", "[quality] max_t = 0.51", "[quality] min_entropy_diversity = 1.2",
             "[quality] min_entropy_diversity = 1.1", "[quality] max_t = 0.3"]  # fmt: skip
    accept = ["[quality] accept = { a = 1 }", "[quality] accept = { b = 1 }", "[quality] accept = { a = 1 }"]
    assert merged_lines(accept) == ["[quality] accept = { a = 1, b = 1 }"]
    assert merged_lines(lines) == ["[quality] max_t = 0.51", "[quality] min_entropy_diversity = 1.1"]


def test_refusal_is_one_text_without_blank_lines_and_a_list_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failures = (*EIGHTEEN, *THREE)
    replace_verbs(monkeypatch, GateRefused(refusal_text("Refused.", failures), failures))
    assert run_command(["protect", "release.toml", "--json"]) == 4
    out, err = capsys.readouterr()
    assert len(err.splitlines()) == 28
    content = json.loads(out.splitlines()[-1])
    assert content["reason"] == " ".join(err.split())
    assert len(content["failures"]) == 21
    assert content["failures"][0] == {
        "key": "unique_published of v0", "what": "share of records unique with v0", "found": "0.5",
        "limit": "at most 0.01", "remedy": "protect the column", "line": ACCEPT,
    }  # fmt: skip
