"""Draft a specification for a file: guessed roles and kinds, with the risk these guesses would carry."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.drafting.profile import MOST_RECORDS, Column, Profile
from pipelines.drafting.roles import Guess, K, by_pattern, counts_units, guess, is_nameable
from pipelines.drafting.sniff import Source, sniff
from pipelines.drafting.table import drafted_table, quoted
from pipelines.engine.outcome import Outcome
from schemas.errors import InputRejected
from schemas.specification.read import build_specification

MOST_LEFT_OUT = 20
"""Variables whose single contribution to the risk is counted; each costs a pass over the file."""


def draft(named: str) -> Outcome:
    """Profile the input and write its draft specification.

    Parameters
    ----------
    named : str
        A Parquet or CSV file, a folder or a glob.

    Returns
    -------
    Outcome
        The text is a valid specification that fits the input, its comments say why and what the risk is.

    Raises
    ------
    InputRejected
        Where the input cannot be read or has fewer than k records.
    """
    source = sniff(named)
    with Profile(source) as profile:
        if profile.records < K:
            raise InputRejected(f"{named} has {profile.records} record(s): a release needs at least k = {K}.")
        guesses = guess(profile)
        risk = _risk(profile, guesses)
        text = _text(profile, guesses, risk, drafted_table(profile, guesses))
    build_specification(tomllib.loads(text), Path.cwd(), "draft")
    variables = {each.name: {"role": each.role, "kind": each.kind, "why": each.why} for each in guesses}
    content = {"records": profile.records, "k": K, "variables": variables, "risk": risk, "draft": text}
    return Outcome(text, content)


def _risk(profile: Profile, guesses: Sequence[Guess]) -> dict[str, Any]:
    """Counts over the guessed quasi-identifiers with the region, as the file stands."""
    protected = _columns(guesses, "quasi_identifier")
    region = _columns(guesses, "region")
    classes, below, uniques, _ = profile.classes([*region, *protected], K)
    without = {}
    if 1 < len(protected) <= MOST_LEFT_OUT:
        for column in protected:
            rest = [*region, *(other for other in protected if other is not column)]
            without[column.name] = profile.classes(rest, K)[2]
    return {"classes": classes, "records_below_k": below, "uniques": uniques, "uniques_without": without}


def _columns(guesses: Sequence[Guess], role: str) -> list[Column]:
    return [each.column for each in guesses if each.role == role and each.column is not None]


def _text(profile: Profile, guesses: Sequence[Guess], risk: dict[str, Any], table: str) -> str:
    name = _release_name(profile.source)
    parts = [
        _introduction(profile, risk),
        f"[release]\nname = {quoted(name)}\nk = {K}\nseed = 0",
        "[input]\n" + "\n".join(_input(profile)),
        "[variables]\n" + "\n".join(_variables(guesses)),
        _counted(profile, guesses),
        _missing(profile, guesses),
        f"[publish]\npath = {quoted('lake/' + name)}\nevidence = {quoted('evidence/' + name)}",
        table,
    ]
    return "\n\n".join(part for part in parts if part)


def _counted(profile: Profile, guesses: Sequence[Guess]) -> str:
    if counts_units(guesses, profile) is not None:
        return '[method]\nunit = "unit"    # the unit repeats: k counts units, not their records'
    if not any(each.role == "household" for each in guesses):
        return ""
    return (
        "# k counts records; to let it count households, whose members are often alike:\n"
        '# [method]\n# unit = "household"'
    )


def _introduction(profile: Profile, risk: dict[str, Any]) -> str:
    records = f"{profile.records:,} records" + (f" (the first {MOST_RECORDS:,})" if profile.cut else "")
    lines = [
        f"Draft by microguard from {records} of {len(profile.source.schema.names)} columns.",
        "Every role and kind below is a guess: read each line before you publish anything.",
        "",
        f"Risk as the file stands, on the guessed quasi-identifiers (with the region), k = {K}:",
        f"  combinations {risk['classes']:,}, records in combinations below k {risk['records_below_k']:,}, "
        f"unique records {risk['uniques']:,} ({risk['uniques'] / profile.records:.1%})",
    ]
    if risk["uniques_without"]:
        lines.append(
            "Unique records if one of them were left out (a large drop: it makes records recognisable):"
        )
        ordered = sorted(risk["uniques_without"].items(), key=lambda item: item[1])
        lines += [f"  without {_shown(name)}: {uniques:,}" for name, uniques in ordered]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _input(profile: Profile) -> list[str]:
    source = profile.source
    lines = [f"path = {quoted(str(source.path))}", f'format = "{source.format}"']
    if source.format == "csv":
        lines += [f"delimiter = {quoted(source.delimiter)}", f'encoding = "{source.encoding}"']
        lines.append(f'decimal = "{profile.numerals.decimal}"')
        if profile.numerals.thousands is not None:
            lines.append(f'thousands = "{profile.numerals.thousands}"')
    if profile.missing is not None:
        lines.append(f"missing = {quoted(profile.missing)}")
    if not all(map(is_nameable, source.schema.names)):
        lines.append('unmentioned = "drop"    # a column without a name, or with one that is reserved')
    return lines


def _variables(guesses: Sequence[Guess]) -> list[str]:
    lines = []
    for each in guesses:
        kind = f', kind = "{each.kind}"' if each.kind else ""
        codes = each.column.missing_codes if each.column is not None and each.role != "identifier" else ()
        missing = f", missing = {list(codes)}" if codes else ""
        why = f"{each.why}; {_codes(codes)}" if codes else each.why
        lines.append((f'{_key(each.name)} = {{ role = "{each.role}"{kind}{missing} }}', why))
    width = max(len(line) for line, _ in lines)
    return [f"{line:<{width}}    # {why}" for line, why in lines]


def _codes(codes: Sequence[int]) -> str:
    return f"{' and '.join(map(str, codes))} taken for missing, as the other values do not lead up to it"


def _missing(profile: Profile, guesses: Sequence[Guess]) -> str:
    numeric = [each.column for each in guesses if each.kind == "numeric" and each.column is not None]
    rejected = profile.records - profile.count(profile.accepting(numeric))
    if not rejected:
        return ""
    if by_pattern(guesses, profile):
        why = "many records lack a number: they are clustered with those that lack the same"
        return f'[missing]\nnumeric = "own_cluster"    # {why}'
    why = "records without one of the numbers; they would be left out of the release"
    return f"[missing]\nmax_rejected = {rejected}    # {why}"


def _release_name(source: Source) -> str:
    stem = re.sub(r"[^\w.-]+", "_", source.path.name.split(".")[0]).strip("_.-")
    return stem[:50] or "release"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def _shown(name: str) -> str:
    return quoted(name)[1:-1]
