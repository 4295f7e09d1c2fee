"""Draft of a specification for a file: guessed roles and kinds, with the disclosure risk of the file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

from microguard.pipelines.drafting.argus_metadata import draft_with_metadata
from microguard.pipelines.drafting.column import Column
from microguard.pipelines.drafting.comparison_row import format_comparison, percent
from microguard.pipelines.drafting.counting import K, clusters_by_missing_pattern, counted_unit
from microguard.pipelines.drafting.derived import Derived
from microguard.pipelines.drafting.finished_table import draft_finished_table, plain_name
from microguard.pipelines.drafting.guess import Guess
from microguard.pipelines.drafting.profile import MOST_RECORDS, Profile
from microguard.pipelines.drafting.roles import guess_roles, is_nameable
from microguard.pipelines.drafting.sniff import sniff
from microguard.pipelines.drafting.table import draft_table, quoted, shown, toml_key
from microguard.pipelines.drafting.trial import Trial, trial
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.intake.columns import is_ignored
from microguard.schemas.errors import InputRejected
from microguard.schemas.specification.read import build_specification
from microguard.schemas.specification.sections import Quality

RECODED = ("quasi_identifier", "sensitive", "other", "region")
"""Roles for which a draft lists codes of missing values."""
MOST_LEFT_OUT = 20
"""Maximum number of variables whose contribution to the risk is counted; each requires a pass over the file.
"""
_ACCEPT = "or accept it in [quality] (microguard check prints the line)"
PROTECT = f'make it a quasi_identifier, exclude it (role = "identifier"), {_ACCEPT}'
PROTECT_WEIGHT = (
    f'make it a numeric quasi_identifier (a class gets its mean), exclude it (role = "identifier"), {_ACCEPT}'
)
ROOM = 1.5
"""Ratio of the drafted limit on the loss to the loss of the trial, which uses a sample and a fast method."""


def draft(named: str, cells: str | None = None) -> CommandResult:
    """Profile the input and return a draft specification for it.

    Parameters
    ----------
    named : str
        A Parquet or CSV file, a folder or a glob; with `cells` a JSON-stat file.
    cells : str, optional
        New CSV file for the cells of a JSON-stat table; the draft is made for this CSV file.

    Returns
    -------
    CommandResult
        The text is a valid specification that fits the input. Its comments give the reasons and the risk.

    Raises
    ------
    InputRejected
        If the input cannot be read or has fewer than k records. If a file of cells is named: if it exists, or
        the input is not a JSON-stat table, or a dimension with several codes has no total.
    """
    if cells is not None:
        from microguard.pipelines.drafting.json_stat import draft_of_cells

        return _of_table(draft_of_cells(named, cells))
    described = draft_with_metadata(named)
    if described is not None:
        return _of_table(described)
    source = sniff(named)
    finished = draft_finished_table(source)
    if finished is not None:
        return _of_table(finished)
    with Profile(source) as profile:
        drafted = draft_records(profile)
    variables = {
        each.name: {
            "role": each.role,
            "kind": each.kind,
            "confidence": each.confidence,
            "why": each.why,
            "alternative": None if each.alternative is None else asdict(each.alternative),
        }
        for each in drafted.guesses
    }
    content = {"records": drafted.records, "k": drafted.k, "variables": variables, "risk": drafted.risk}
    tried = None if drafted.trial is None else asdict(drafted.trial)
    return CommandResult(drafted.text, content | {"draft": drafted.text, "trial": tried})


@dataclass(frozen=True)
class Draft:
    """A draft for a file of records.

    Attributes
    ----------
    records, k : int
    guesses : tuple of Guess
    risk : dict
        Classes and uniques of the unprotected file.
    trial : Trial or None
    text : str
        A valid specification.
    """

    records: int
    k: int
    guesses: tuple[Guess, ...]
    risk: dict[str, Any]
    trial: Trial | None
    text: str


def draft_records(profile: Profile) -> Draft:
    """Draft a specification for a file of records.

    Raises
    ------
    InputRejected
        If the file has fewer than k records.
    """
    if profile.records < K:
        raise InputRejected(
            f"{profile.source.named} has {profile.records} record(s), expected at least k = {K}. Name a "
            "larger file."
        )
    guesses, derived = guess_roles(profile)
    tried = trial(profile, guesses)
    k = K if tried is None else tried.k
    risk = _risk(profile, guesses, k)
    text = _text(profile, guesses, derived, risk, tried, k)
    build_specification(tomllib.loads(text), Path.cwd(), "draft")
    return Draft(profile.records, k, tuple(guesses), risk, tried, text)


def _risk(profile: Profile, guesses: Sequence[Guess], k: int) -> dict[str, Any]:
    """Count classes and uniques of the file on the guessed quasi-identifiers and the region."""
    protected = _columns(guesses, "quasi_identifier")
    region = _columns(guesses, "region")
    classes, below, uniques, _ = profile.classes([*region, *protected], k)
    without = {}
    if 1 < len(protected) <= MOST_LEFT_OUT:
        for column in protected:
            rest = [*region, *(other for other in protected if other is not column)]
            without[column.name] = profile.classes(rest, k)[2]
    return {"classes": classes, "records_below_k": below, "uniques": uniques, "uniques_without": without}


def _columns(guesses: Sequence[Guess], role: str) -> list[Column]:
    return [each.column for each in guesses if each.role == role and each.column is not None]


def _text(
    profile: Profile,
    guesses: Sequence[Guess],
    derived: Sequence[Derived],
    risk: dict[str, Any],
    tried: Trial | None,
    k: int,
) -> str:
    name = plain_name(profile.source.path)
    parts = [
        _introduction(profile, risk, k),
        _tried(tried, profile),
        f"[release]\nname = {quoted(name)}\nk = {k}{_why(tried)}\nseed = 0",
        "[input]\n" + "\n".join(_input(profile)),
        "[variables]\n" + "\n".join(_variables(guesses, tried)),
        _derived(derived),
        _method(profile, guesses, tried),
        _missing(profile, guesses),
        _publish(name, guesses),
        _limits(profile, guesses, tried),
        _groups(tried),
        draft_table(profile, guesses, k),
    ]
    return "\n\n".join(part for part in parts if part)


def _derived(derived: Sequence[Derived]) -> str:
    if not derived:
        return ""
    lines = [f"{toml_key(each.column.name)} = {quoted(each.expression or '')}" for each in derived]
    head = "[derived]    # computed after protection, so that columns do not contradict each other"
    return "\n".join([head, *lines])


def _method(profile: Profile, guesses: Sequence[Guess], tried: Trial | None) -> str:
    lines = []
    if tried is not None and tried.min_diversity > 1:
        why = "with 1, too many records are in classes with one value of a sensitive variable"
        lines.append(f"min_diversity = {tried.min_diversity}    # {why}")
    if counted_unit(guesses, profile) is not None:
        lines.append('unit = "unit"    # the unit repeats: k counts units, not their records')
    weights = [each.column for each in guesses if each.role == "weight" and each.column is not None]
    if len(weights) > 1:
        # this weight must be positive in every record
        first = max(weights, key=lambda column: column.positive)
        lines.append(f"weight = {quoted(first.name)}    # choose the weight whose totals are to be kept")
    if lines:
        return "\n".join(["[method]", *lines])
    if not any(each.role == "household" for each in guesses):
        return ""
    return (
        "# k counts records. To count households, whose members often have equal values:\n"
        '# [method]\n# unit = "household"'
    )


def _tried(tried: Trial | None, profile: Profile) -> str:
    """Format the results of the trial as comments."""
    if tried is None:
        return ""
    lines = [
        f"Trial on {tried.sampled:,} of {profile.records:,} records, "
        f"{'one per unit, ' if tried.one_each else ''}drawn by a hash of their contents and clustered",
        "with the fastest method (records of a larger file have nearer neighbours and less loss):",
        *(f"  {line}" for line in format_comparison(tried.rows)),
        "A class is a set of records with equal protected values. unique jointly: records that are unique",
        "with all published columns; homogeneous: records in classes with one value of a sensitive variable.",
        "`microguard compare` measures the specified method, also for other k, roles and groups.",
    ]
    return "\n".join(f"# {line}" for line in lines)


def _why(tried: Trial | None) -> str:
    """Return the reason for the drafted k as a comment."""
    if tried is None:
        return ""
    broken = tried.chosen.broken or ()
    if broken:
        return (
            f"    # for every k, the trial exceeds {len(broken)} limit(s) on disclosure: lines with "
            '"above the limit" say what to do'
        )
    return "    # within the limits on disclosure, this k has the least loss in the trial"


def _limits(profile: Profile, guesses: Sequence[Guess], tried: Trial | None) -> str:
    """Return a limit on the loss derived from the trial, if a run clusters records in the same way."""
    loss = None if tried is None else tried.chosen.information_loss
    if (
        loss is None
        or clusters_by_missing_pattern(guesses, profile)
        or counted_unit(guesses, profile) is not None
    ):
        return ""
    limit = min(ceil(100 * ROOM * loss) / 100 or 0.01, 1.0)
    return f"[quality]\nmax_information_loss = {limit:g}    # the loss of the trial is {percent(loss)}"


def _groups(tried: Trial | None) -> str:
    """Return groups with less loss as comments, because the user must accept a weaker guarantee."""
    if tried is None or tried.grouping is None:
        return ""
    grouping = tried.grouping
    cost, instead, unique = map(percent, (grouping.cost, tried.cost, grouping.unique))
    lines = [
        "# These groups of associated variables would each be k-anonymous separately. They reduce the mean "
        "loss",
        f"# from {instead} to {cost}, but {unique} of the records are then unique on all groups together:",
    ]
    for number, names in enumerate(grouping.names, start=1):
        listed = ", ".join(map(quoted, names))
        lines += ["# [[groups]]", f'# name = "group_{number}"', f"# variables = [{listed}]"]
    return "\n".join(lines)


def _publish(name: str, guesses: Sequence[Guess]) -> str:
    lines = [
        "[publish]",
        f"path = {quoted('lake/' + name)}",
        f"evidence = {quoted('evidence/' + name)}",
    ]
    dependent = [quoted(each.name) for each in guesses if each.dependent]
    if dependent:
        lines += [
            "# A run refuses these columns, which determine a protected variable, unless you accept them:",
            f"# accept_dependencies = [{', '.join(dependent)}]",
        ]
    return "\n".join(lines)


def _introduction(profile: Profile, risk: dict[str, Any], k: int) -> str:
    records = f"{profile.records:,} records" + (f" (the first {MOST_RECORDS:,})" if profile.cut else "")
    lines = [
        f"Draft by microguard from {records} of {len(profile.source.schema.names)} columns.",
        "Every role and kind below is a guess: read each line before you publish. If a commented line",
        "follows, the data do not decide the role: to choose it, remove its # and the line before it.",
        "",
        f"Risk of the unprotected file on the guessed quasi-identifiers (with the region), k = {k}:",
        f"  combinations {risk['classes']:,}, records in combinations below k {risk['records_below_k']:,}, "
        f"unique records {risk['uniques']:,} ({risk['uniques'] / profile.records:.1%})",
    ]
    if risk["uniques_without"]:
        lines.append(
            "Unique records without one of them (a variable with a large drop makes records identifiable):"
        )
        ordered = sorted(risk["uniques_without"].items(), key=lambda item: item[1])
        lines += [f"  without {shown(name)}: {uniques:,}" for name, uniques in ordered]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _input(profile: Profile) -> list[str]:
    source = profile.source
    lines = [f"path = {quoted(source.written)}", f'format = "{source.format}"']
    if source.format == "csv":
        lines += [f"delimiter = {quoted(source.delimiter)}", f'encoding = "{source.encoding}"']
        if source.quote != '"':
            lines.append(f"quote = {quoted(source.quote)}")
        lines.append(f'decimal = "{profile.number_format.decimal}"')
        if profile.number_format.thousands is not None:
            lines.append(f'thousands = "{profile.number_format.thousands}"')
    if profile.missing is not None:
        named = ", ".join(map(quoted, profile.marked[:3])) + ", ..." * (len(profile.marked) > 3)
        why = f"a missing value in {named}; if it is a category, delete this line"
        lines.append(f"missing = {quoted(profile.missing)}    # {why}")
    names = source.schema.names
    lines += [
        f"# {name}: the index of pandas, left out" for name in names if name and is_ignored(name, names)
    ]
    if not all(is_nameable(name) or is_ignored(name, names) for name in names):
        lines.append('unmentioned = "drop"    # drops columns without a name or with a reserved name')
    return lines


def _variables(guesses: Sequence[Guess], tried: Trial | None) -> list[str]:
    """Return a line for each variable; add a commented-out alternative if the user should choose."""
    lines: list[tuple[str, str]] = []
    for each in guesses:
        column = each.column
        codes = column.missing_codes if column is not None and each.role in RECODED else ()
        doubtful = column.doubtful_codes if column is not None and each.role in RECODED else ()
        why = f"{each.confidence}: {each.why}"
        why += f"; {_codes(codes)}" if codes else ""
        why += "" if tried is None else _shown_by(tried, each)
        lines.append((_line(each.name, each.role, each.kind, codes), why))
        if doubtful:
            shown = " and ".join(map(str, doubtful))
            line = _line(each.name, each.role, each.kind, (*codes, *doubtful))
            lines.append((f"# {line}", f"if {shown} represents a missing value"))
        if each.alternative is not None:
            chosen = each.alternative
            line = _line(each.name, chosen.role, chosen.kind, (), chosen.recode)
            lines.append((f"# {line}", each.alternative.when))
    width = max(len(line) for line, _ in lines)
    return [f"{line:<{width}}    # {why}" for line, why in lines]


def _line(name: str, role: str, kind: str | None, codes: Sequence[int], recode: str = "") -> str:
    kinds = f', kind = "{kind}"' if kind else ""
    missing = f", missing = {list(codes)}" if codes else ""
    return f'{toml_key(name)} = {{ role = "{role}"{kinds}{missing}{recode} }}'


def _shown_by(tried: Trial, each: Guess) -> str:
    """Return the result of the trial for a variable."""
    limits = Quality()
    if each.name in tried.losses:
        lost = percent(tried.losses[each.name])
        if each.kind == "numeric":
            return f"; k = {tried.k} loses {lost} of its variance"
        return f"; k = {tried.k} changes {lost} of its values"
    if each.name in tried.unique_with:
        unique = tried.unique_with[each.name]
        remedy = PROTECT_WEIGHT if each.role == "weight" else PROTECT
        above = f", above the limit: {remedy}" if unique > limits.max_unique_published else ""
        return f"; published unmodified, and with it {percent(unique)} of the records are unique{above}"
    if each.name in tried.homogeneous:
        alike = tried.homogeneous[each.name]
        remedy = "raise k, or set method.min_diversity = 2"
        above = f", above the limit: {remedy}" if alike > limits.max_homogeneous else ""
        return f"; {percent(alike)} of the records are in classes with one value of it{above}"
    return ""


def _codes(codes: Sequence[int]) -> str:
    return f"{' and '.join(map(str, codes))} treated as missing, because of the distance from other values"


def _missing(profile: Profile, guesses: Sequence[Guess]) -> str:
    numeric = [
        each.column
        for each in guesses
        if each.role == "quasi_identifier" and each.kind == "numeric" and each.column is not None
    ]
    rejected = profile.records - profile.count(profile.condition_all_finite(numeric))
    if not rejected:
        return ""
    if clusters_by_missing_pattern(guesses, profile):
        why = "many records lack a number: records with the same missing pattern are clustered together"
        return f'[missing]\nnumeric = "own_cluster"    # {why}'
    why = "records that lack one of the numbers, and are excluded from the release"
    return f"[missing]\nmax_rejected = {rejected}    # {why}"


def _of_table(drafted: str) -> CommandResult:
    return CommandResult(drafted, {"table": True, "draft": drafted})
