"""Tests that the runner of the manual's examples reads commands and outputs as they are written."""

from __future__ import annotations

from tests.docs.console import Step, pages, steps


def test_steps_split_a_block_into_commands_and_outputs() -> None:
    block = "$ head -1 a.csv\nid,k\n$ microguard check a.toml\nfirst\nsecond\n"
    assert steps(block) == [Step("head -1 a.csv", "id,k"), Step("microguard check a.toml", "first\nsecond")]


def test_tutorial_and_guides_with_examples_are_among_the_pages() -> None:
    assert {"tutorial", "table", "business", "register", "census"} <= {page.stem for page in pages()}
