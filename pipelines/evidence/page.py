"""The agency's report of a release: one self-contained page, rebuilt from its evidence at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jinja2
from markupsafe import Markup
from microguard.pipelines.description.accessible_page import accessible_page
from microguard.pipelines.description.recodes import recode_text
from microguard.pipelines.engine.files import checksum, write_atomically
from microguard.pipelines.evidence import plots
from microguard.pipelines.evidence.evidence import Evidence
from microguard.pipelines.evidence.headlines import Attack, Headlined, attacks_of, headline_sentences
from microguard.pipelines.evidence.plain_words import OPEN_RISK, PLAIN_WORDS, TO_DO
from microguard.pipelines.gate.gate import Verdict
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.publication.areas import PAGE, QUALITY
from microguard.pipelines.publication.ledger import Entry
from microguard.schemas.errors import MicroguardError
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.consistency import LIMITS_ON_DISCLOSURE
from microguard.schemas.specification.sections import RECODES

_HERE = Path(__file__).parent
#: From the first on numbers are written without decimals; from the second on, rounded.
FOUR_DIGITS, ALL_DIGITS = 1e3, 1e15
#: Smaller numbers are written as below this one, as 3.5e-05 is hard to read.
SMALLEST = 0.001
#: Key of `[quality]` -> the section of the evidence that it limits.
_COUNTED_BY = {
    "max_information_loss": "loss",
    "max_chi2_per_cell": "by_dimension",
    "max_absolute_error": "by_dimension",
    "max_vanished": "vanished",
    "min_entropy_diversity": "homogeneity",
    "max_t": "homogeneity",
    "max_below_k_in_population": "k_map",
    "max_of_one_value": "dominance",
    "dominance": "dominance",
}


class Drawn(Headlined, Protocol):
    """What the page uses of a measure: its name, and the plots and sentences of its section."""

    @property
    def on_page(self) -> bool: ...
    @property
    def plots(self) -> Any: ...


class Page:
    """The page of a release: plots and sections, drawn once, with the state of the ledger when it is written.

    Parameters
    ----------
    folder : Path
        Evidence folder of the release, to which the page is written.
    evidence : Evidence
    measures : iterable of measures
        Shown in their order, each by the template of its name in ``sections``.

    Raises
    ------
    MicroguardError
        If the template of a measure that has a section on the page is missing.
    """

    def __init__(self, folder: Path, evidence: Evidence, measures: Iterable[Drawn]) -> None:
        shown = list(measures)
        specification = evidence.release.specification
        of_table = evidence.release.content == "table"
        quality = (specification.get("table") or {} if of_table else specification).get("quality") or {}
        limits = [each for each in evidence.verdicts if each.check == "release" and not each.promised]
        accepted = quality.get("accept", {})
        attacks = attacks_of(evidence, shown)
        self._path = folder / PAGE
        self._template = _environment().get_template("page.html")
        self._drawn = {
            "release": evidence.release,
            "counts": evidence.counts,
            "verdicts": evidence.verdicts,
            "limits": limits,
            "limited": bool(limits) and not set(LIMITS_ON_DISCLOSURE) <= set(accepted),
            "unlimited": [
                name
                for name, value in quality.items()
                if value is None and (of_table or _COUNTED_BY.get(name, "risk") in evidence.sections)
            ],
            "accepted": accepted,
            "content": "cells" if of_table else "records",
            "attacks": [_apart(each.sentence) for each in attacks],
            "open_risks": list(_open_risks(attacks)),
            "recodes": dict(_recodes(evidence.release.specification)),
            "glance": list(map(_apart, headline_sentences(evidence, shown))),
            "checksum": checksum(folder / QUALITY),
            "parts": [Markup(part) for part in _parts(evidence, shown)],
            "stage_plot": Markup(plots.stage_plot(evidence.stages)) if evidence.stages else None,
            "style": Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        }

    def write(self, entry: Entry | None) -> Path:
        """Write the page; it says "Published" only if `entry`, the last line of the ledger, does."""
        text = self._template.render(
            self._drawn,
            event=None if entry is None else entry.event,
            at=None if entry is None else entry.at,
            by="" if entry is None else entry.by,
            note="" if entry is None else entry.note,
        )
        write_atomically(self._path, accessible_page(text))
        return self._path


@cache
def _environment() -> jinja2.Environment:
    """Return the environment of the templates, which compiles each of them once."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, loader=jinja2.FileSystemLoader(_HERE)
    )
    environment.globals |= {
        "n": _count,
        "g": _number,
        "percent": _percent,
        "named": _named,
        "moment": _moment,
    }
    return environment


def _parts(evidence: Evidence, measures: Iterable[Drawn]) -> Iterator[str]:
    for measure in measures:
        name = f"sections/{measure.name}.html"
        section = evidence.sections.get(measure.name)
        if section is None or not measure.on_page:
            continue
        try:
            template = _environment().get_template(name)
        except jinja2.TemplateNotFound as error:
            raise MicroguardError(
                f"The report of release {evidence.release.release_id}: expected the template {error.name} of "
                f"the measure {measure.name!r}, found none. A page without it would hide a measure, so "
                "none was written. Reinstall microguard, or add the template of the measure."
            ) from None
        drawn = measure.plots(section, evidence.release.k)
        part = template.render(
            section=section,
            plots={name: Markup(svg) for name, svg in drawn.items()},
            release=evidence.release,
            counts=evidence.counts,
            units=f"{evidence.release.specification.get('method', {}).get('unit', 'record')}s",
        )
        yield _explained(part, PLAIN_WORDS.get(measure.name, ""))


def _explained(part: str, words: str) -> str:
    """Return a section with a sentence in plain words below its heading, or before it if it has none."""
    if not words or not part.strip():
        return part
    plain = f'<p class="plain">{words}</p>'
    heading = re.match(r"\s*<h[23]>.*?</h[23]>", part, re.DOTALL)
    end = 0 if heading is None else heading.end()
    return f"{part[:end]}\n{plain}{part[end:]}"


def _open_risks(attacks: Iterable[Attack]) -> Iterator[str]:
    """Yield risks that are large although all checks passed, each with what to do about it."""
    for attack in attacks:
        if attack.measure in TO_DO and attack.share > OPEN_RISK:
            yield f"{_apart(attack.sentence)} To do: {TO_DO[attack.measure]}, or note why it is acceptable."


def _recodes(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the variables that were recoded before anything was counted, and how, in words."""
    for name, variable in specification.get("variables", {}).items():
        given = {key: variable[key] for key in RECODES if variable.get(key)}
        if given:
            yield name, recode_text(given)


def _named(verdict: Verdict) -> str:
    """Return the metric of a verdict in words."""
    return metric_in_words(MetricKey(verdict.metric, verdict.variable or "", verdict.dimension or 0))


def _moment(text: str | None) -> str:
    """Format a time of the ledger to the minute."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return text or ""
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".rstrip()


def _count(value: Any) -> str:
    nothing = value is None or isinstance(value, jinja2.Undefined)
    return "-" if nothing else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _apart(sentence: str) -> str:
    """Separate thousands as in the tables of the page; keep a number and its percent sign on one line."""
    apart = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "\N{NARROW NO-BREAK SPACE}", sentence)
    return apart.replace(" %", "\N{NO-BREAK SPACE}%")


def _number(value: Any) -> str:
    """Format a number with four digits, or with all digits before the point, without an exponent."""
    if value is None or isinstance(value, jinja2.Undefined):
        return "-"
    if 0 < abs(value) < SMALLEST:
        return f"below {SMALLEST:g}" if value > 0 else f"above -{SMALLEST:g}"
    return _count(value) if FOUR_DIGITS <= abs(value) < ALL_DIGITS else f"{value:.4g}"


def _percent(value: Any) -> str:
    if value is None or isinstance(value, jinja2.Undefined):
        return "-"
    if 0 < 100 * value < SMALLEST:
        return f"below {SMALLEST:g} %"
    return f"{_count(100 * value)} %" if value >= 1 else f"{100 * value:.3g} %"
