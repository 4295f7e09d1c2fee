"""Tests that a draft reads the same roles and kinds from every CSV dialect, or states the error."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from microguard.pipelines.draft import draft
from microguard.pipelines.drafting.profile import Profile
from microguard.pipelines.drafting.roles import guess_roles
from microguard.pipelines.drafting.sniff import sniff
from microguard.schemas.errors import InputRejected

RECORDS = 160
SPELLINGS = 30
CHOICES: dict[str, tuple[str, ...]] = {
    "separator": (",", ";", "\t", "|"),
    "encoding": ("utf-8", "utf-8-sig", "iso-8859-1", "windows-1252", "utf-16"),
    "decimal": (".", ","),
    "thousands": ("", ".", ",", " ", "\u00a0", "\u202f", "'"),
    "quoting": ("needed", "texts", "all", "single"),
    "line_end": ("\n", "\r\n", "\r"),
    "trailing": ("", "header", "lines"),
    "missing": ("", "NA", ".", "NULL", "\\N", "-", "n/a", "NaN", "#N/A", "#NULL!", "(null)", "<NA>"),
    "row_names": ("", "named", "unnamed"),
}


@dataclass(frozen=True)
class Spelling:
    """CSV dialect of a program."""

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    quoting: str = "needed"
    line_end: str = "\n"
    trailing: str = ""
    missing: str = ""
    row_names: str = ""

    @property
    def is_possible(self) -> bool:
        """Return whether the dialect is readable: its marks differ, and its encoding has all characters."""
        apart = self.thousands not in (self.decimal, "'" if self.quoting == "single" else None)
        return apart and not (self.thousands == "\u202f" and not self.encoding.startswith("utf"))

    def number(self, value: float | None, digits: int) -> str:
        if value is None:
            return self.missing
        text = f"{value:,.{digits}f}".replace(",", "\0").replace(".", self.decimal)
        return text.replace("\0", self.thousands)

    def field(self, text: str, of_text: bool) -> str:
        mark = "'" if self.quoting == "single" else '"'
        wanted = self.quoting in ("all", "single") or (self.quoting == "texts" and of_text)
        if wanted or self.separator in text or mark in text:
            return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
        return text

    def line(self, fields: list[tuple[str, bool]]) -> str:
        return self.separator.join(self.field(*each) for each in fields)

    def write(self, path: Path) -> Path:
        """Write the file in this dialect; `utf-16` has a byte order mark."""
        lines = []
        for i, record in enumerate(RECORDS_WRITTEN):
            fields = [(str(i + 1), True)] if self.row_names else []
            for name, value in zip(NAMES, record, strict=True):
                if name in DIGITS:
                    fields.append((self.number(value, DIGITS[name]), False))
                else:
                    fields.append((self.missing if value is None else value, value is not None))
            lines.append(self.line(fields) + self.separator * (self.trailing == "lines"))
        first = [("" if self.row_names == "unnamed" else "row", True)] if self.row_names else []
        header = self.line([*first, *((name, True) for name in NAMES)])
        lines.insert(0, header + self.separator * (self.trailing != ""))
        if self.trailing == "header":
            lines[1:] = [line + self.separator for line in lines[1:]]
        path.write_bytes((self.line_end.join(lines) + self.line_end).encode(self.encoding))
        return path


NAMES = ("case", "sex", "region", "age", "nace", "rent", "turnover", "married", "since")
DIGITS = {"age": 0, "rent": 2, "turnover": 0}


def _records() -> list[tuple]:
    rng = np.random.default_rng(1)
    columns = (
        [f"P{i:05}" for i in rng.choice(99_999, RECORDS, replace=False)],
        rng.choice(["f", "m"], RECORDS).tolist(),
        rng.choice(["Kärnten", "Île", "Süd, Ost", "West; neu"], RECORDS).tolist(),
        rng.integers(18, 91, RECORDS).tolist(),
        rng.choice(["011", "014", "251", "471"], RECORDS).tolist(),
        rng.gamma(9, 100, RECORDS).round(2).tolist(),
        (rng.lognormal(12, 1.0, RECORDS).round() + 1).tolist(),
        rng.choice(["true", "false"], RECORDS).tolist(),
        [
            f"20{i:02}-03-{j:02}"
            for i, j in zip(rng.integers(0, 24, RECORDS), rng.integers(1, 29, RECORDS), strict=True)
        ],
    )
    records = [list(each) for each in zip(*columns, strict=True)]
    for i in range(0, RECORDS, 20):
        records[i][5] = records[i + 1][1] = None
    return [tuple(each) for each in records]


RECORDS_WRITTEN = _records()


def read(path: Path) -> dict[str, tuple[str, str | None, int]]:
    """Return role, kind and number of missing values of each column."""
    with Profile(sniff(str(path))) as profile:
        guesses, _ = guess_roles(profile)
        return {
            each.name: (each.role, each.kind, profile.records - each.column.present)
            for each in guesses
            if each.column is not None and each.name != "row"
        }


def spellings(seed: int) -> list[Spelling]:
    rng = np.random.default_rng(seed)
    drawn = (
        Spelling(**{key: str(rng.choice(values)) for key, values in CHOICES.items()})
        for _ in range(4 * SPELLINGS)
    )
    return [each for each in drawn if each.is_possible][:SPELLINGS]


def refusal(spelling: Spelling) -> str | None:
    """Return the text that the refusal of a dialect must contain, or None if the dialect is read."""
    if spelling.encoding == "utf-16":
        return "iconv -f UTF-16"
    return "at most one unnamed column" if spelling.row_names == "unnamed" and spelling.trailing else None


def differences(written: list[Spelling], folder: Path) -> list[str]:
    """Return dialects whose draft differs from the clean one or whose refusal lacks the reason."""
    expected = read(Spelling().write(folder / "clean.csv"))
    assert expected["rent"] == ("quasi_identifier", "numeric", RECORDS // 20)
    wrong = []
    for number, spelling in enumerate(written):
        reason = refusal(spelling)
        try:
            found: object = read(spelling.write(folder / f"{number}.csv"))
        except InputRejected as refused:
            found = str(refused)
        if found != expected if reason is None else reason not in str(found):
            wrong.append(f"{spelling}: {found}")
    return wrong


def test_draft_reads_every_csv_dialect_like_the_clean_file(tmp_path):
    single = dict.fromkeys(Spelling(**{key: value}) for key, values in CHOICES.items() for value in values)
    assert not differences([each for each in single if each.is_possible], tmp_path)


def test_draft_reads_random_csv_dialects_like_the_clean_file(tmp_path):
    assert not differences(spellings(1), tmp_path)


@pytest.mark.long
def test_draft_reads_many_csv_dialects_like_the_clean_file(tmp_path):
    assert not differences([each for seed in range(2, 18) for each in spellings(seed)], tmp_path)


ROWS = "".join(f"{i},{'fm'[i % 2]},{1000 + 37 * i}\n" for i in range(1, 60))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"sex,income\n{ROWS}", "row names written by R"),
        (f"sep=,\nid,sex,income\n{ROWS}", "Remove this line"),
        (f"Survey of 2024,,\nid,sex,income\n{ROWS}", "remove lines above the header"),
        (ROWS.replace(",", "\x01"), "Add a header"),
        (ROWS.replace(",", "~"), "Add a header"),
    ],
    ids=[
        "row names of R",
        "separator line of Excel",
        "title",
        "Hive without a header",
        "rare delimiter, no header",
    ],
)
def test_first_line_without_a_header_is_refused_with_what_to_do(content, message, tmp_path):
    (tmp_path / "d.csv").write_text(content)
    with pytest.raises(InputRejected, match=message) as caught:
        read(tmp_path / "d.csv")
    assert "1037" not in str(caught.value)


@pytest.mark.parametrize("delimiter", ["\x01", "~", "^"])
def test_rare_delimiter_is_drafted(delimiter, tmp_path):
    (tmp_path / "d.csv").write_text(f"id,sex,income\n{ROWS}".replace(",", delimiter))
    content = tomllib.loads(draft(str(tmp_path / "d.csv")).summary())
    assert content["input"]["delimiter"] == delimiter
    assert list(content["variables"]) == ["id", "sex", "income"]
