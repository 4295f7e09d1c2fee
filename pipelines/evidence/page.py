"""Agency's report of a release: one self-contained page that can be rebuilt from its evidence at any time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import jinja2
from markupsafe import Markup
from microguard.pipelines.description.public_page import accessible_page
from microguard.pipelines.description.recodes import recode_text
from microguard.pipelines.engine.files import checksum, write_atomically
from microguard.pipelines.evidence import plots
from microguard.pipelines.evidence.evidence import Attack, Evidence, Headlined, attacks_of, headline_sentences
from microguard.pipelines.gate.gate import Verdict
from microguard.pipelines.gate.plain_names import metric_in_words
from microguard.pipelines.publication.areas import PAGE, QUALITY
from microguard.pipelines.publication.ledger import Entry
from microguard.schemas.errors import MicroguardError
from microguard.schemas.method_registry import BUILT_IN
from microguard.schemas.requirements.requirement import MetricKey
from microguard.schemas.specification.consistency import HELD_BY_DEFAULT
from microguard.schemas.specification.loosened import OF_TABLES, loosened
from microguard.schemas.specification.sections import RECODES

_HERE = Path(__file__).parent
#: Explanation of each measure in one or two sentences, which the page shows below its heading.
PLAIN_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "risk": (
            "The number of records that share each combination of the protected variables. A combination "
            "that only one person has identifies this person."
        ),
        "individual_risk": (
            "The probability that an intruder who knows the protected variables of everybody selects the "
            "right record."
        ),
        "household_risk": "The probability that an intruder finds a household through any of its members.",
        "k_map": (
            "The number of people in the whole population, not only in this file, who share a combination."
        ),
        "record_linkage": (
            "An experiment: original records are matched with the nearest protected ones, and the correct "
            "matches are counted."
        ),
        "special_uniques": (
            "Records that are unique on a few variables. The fewer variables are needed, the easier a "
            "person is found."
        ),
        "uniques_published": "Records that can be identified by columns that were not changed.",
        "homogeneity": (
            "A class is a set of records with equal values of the protected variables. If all of them "
            "have one value of a sensitive variable, anyone who finds the class learns this value."
        ),
        "changed": (
            "The share of values that differ from the original, and whether a model can distinguish "
            "protected from original records."
        ),
        "loss": (
            "The information loss is the share of the variation of the numbers that protection removed: 0 "
            "% means that all numbers are unchanged, 100 % that only the mean remains."
        ),
        "moments": "Standard deviations before and after protection: averaging makes numbers more similar.",
        "correlations": (
            "Correlations before and after protection: 1 means that two variables always rise together, 0 "
            "that they are unrelated, -1 that one rises when the other falls."
        ),
        "estimates": "Totals, means and quantiles as readers compute them, before and after protection.",
        "dominance": (
            "A mean over few records discloses the value of a person whose amount is most of the total."
        ),
        "by_dimension": (
            "Errors of counts in tables. Dimension 1 contains counts by one variable, dimension 2 by two. "
            "Chi-square is the sum of the squared errors, each divided by its original count."
        ),
        "by_region": "Errors of counts in the tables of each region.",
        "exchanged_areas": (
            "Records that moved to another area, and how often it is correct to take a rare record for a "
            "person of its published area."
        ),
        "coarsening": (
            "Values that were suppressed or published at a coarser level of their hierarchy, compared "
            "with the least possible number."
        ),
        "suppression": (
            "Cells without a value: sensitive cells, and further cells without which the sensitive ones "
            "could be computed."
        ),
        "intervals": (
            "What readers can infer about a suppressed cell: the width of the interval that contains its "
            "true value, divided by the width that its protection requires."
        ),
        "weighted_tables": "The same errors, with each record counted by its sampling weight.",
        "cell_keys": (
            "Errors of the same tables if they were published with noise instead of being computed from "
            "protected records."
        ),
        "vanished": "Table cells that contained records before protection and contain none now.",
        "vanished_by_region": (
            "Cells in the tables of regions that contained records before protection and contain none now."
        ),
        "certificates": (
            "The difference between the result and the best possible one, as far as it was proved."
        ),
        "blocks": "The file was divided into blocks that were protected separately.",
        "table": (
            "Content of the table. A margin is a total of other cells; a sensitive cell would disclose "
            "the value of a contributor."
        ),
        "attacker": (
            "What an attacker can compute about a sensitive cell from all published values. The "
            "protection level is the minimum error of the attacker's estimate."
        ),
        "noise": "Each count was changed by a small random number that is equal in every table.",
        "amount_noise": (
            "Each amount was changed by a random share of its largest contributions that is equal in "
            "every table."
        ),
        "fit": "How closely protected cells agree with the original ones: 1 means exactly.",
        "changes": "Changes of cells relative to their values.",
        "adjustment": "The sum of all changes, and the least sum that any protection must cause.",
    }
)

#: Advice for risks that a measure shows and that the gate does not limit.
TO_DO: Mapping[str, str] = MappingProxyType(
    {
        "household_risk": 'set method.unit = "household", so that k counts households',
        "k_map": (
            "set quality.max_below_k_in_population, or recode the variables that count the population "
            "more coarsely"
        ),
        "uniques_published": "protect or leave out columns, or lower quality.max_unique_jointly",
        "homogeneity": "raise method.min_diversity, or lower quality.max_homogeneous",
        "dominance": "raise release.k, or set quality.dominance and quality.max_of_one_value",
    }
)
#: Advice for risks of households by a method that cannot count them.
NO_UNIT = "choose a method that counts households (microaggregation with method.unit)"
#: Share of records or clusters above which a risk in `TO_DO` counts as open, although all checks passed.
OPEN_RISK = 0.05
#: Measures whose risk counts as open only above 1/k, the level that k-anonymity guarantees.
ABOVE_ONE_IN_K = ("household_risk",)
#: Size from which numbers are written without decimals, and size from which they are rounded.
FOUR_DIGITS, ALL_DIGITS = 1e3, 1e15
#: Smaller numbers are written as "below" this number, because a number such as 3.5e-05 is hard to read.
SMALLEST = 0.001
#: Section of the evidence that each key of `[quality]` limits.
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


def _is_measured(name: str, sections: Mapping[str, Any], of_table: bool) -> bool:
    """Return whether the release has the figure that a key of ``[quality]`` would limit."""
    if of_table:
        return name.removeprefix("max_").removeprefix("min_") in sections.get("metrics", {})
    return _COUNTED_BY.get(name, "risk") in sections


#: SVG texts by name, for each measure.
Plots = Mapping[str, Mapping[str, Any]]


class Drawn(Headlined, Protocol):
    """Interface of a measure for the page: name, plots and sentences of its section."""

    @property
    def on_page(self) -> bool: ...
    @property
    def plots(self) -> Any: ...


class Page:
    """Page of a release; plots and sections are drawn once, the ledger status is added when the page is
    written.

    Parameters
    ----------
    folder : Path
        Evidence folder of the release, to which the page is written.
    evidence : Evidence
    measures : iterable of measures
        Measures in page order; each is shown by the template of its name in ``sections``.
    drawn : mapping of measure to its plots by name, optional
        Plots as returned by `plots_of`; drawn here by default.

    Raises
    ------
    MicroguardError
        If the template of a measure that has a section on the page is missing.
    """

    def __init__(
        self, folder: Path, evidence: Evidence, measures: Iterable[Drawn], drawn: Plots | None = None
    ) -> None:
        shown = list(measures)
        drawn = plots_of(shown, evidence.sections, evidence.release.k) if drawn is None else drawn
        specification = evidence.release.specification
        of_table = evidence.release.content == "table"
        quality = (specification.get("table") or {} if of_table else specification).get("quality") or {}
        limits = [each for each in evidence.verdicts if each.check == "release" and not each.promised]
        accepted, looser = quality.get("accept", {}), loosened(quality, of_table=of_table)
        by_default = set(OF_TABLES if of_table else HELD_BY_DEFAULT)
        attacks = attacks_of(evidence, shown)
        self._path = folder / PAGE
        self._template = _environment().get_template("page.html")
        self._drawn = {
            "release": evidence.release,
            "counts": evidence.counts,
            "verdicts": evidence.verdicts,
            "limits": limits,
            "limited": bool(limits) and not by_default <= set(accepted) - set(looser),
            "unlimited": [
                name
                for name, value in quality.items()
                if value is None and _is_measured(name, evidence.sections, of_table)
            ],
            "accepted": {**accepted, **looser},
            "content": "cells" if of_table else "records",
            "attacks": [_apart(each.sentence) for each in attacks],
            "open_risks": list(_open_risks(attacks, evidence.release.k, _method_keys(specification))),
            "recodes": dict(_recodes(evidence.release.specification)),
            "glance": list(map(_apart, headline_sentences(evidence, shown))),
            "checksum": checksum(folder / QUALITY),
            "parts": [Markup(part) for part in _parts(evidence, shown, drawn)],
            "stage_plot": Markup(plots.stage_plot(evidence.stages)) if evidence.stages else None,
            "style": Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        }

    def write(self, entry: Entry | None) -> Path:
        """Write the page; it contains "Published" only if `entry`, the last line of the ledger, states it."""
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
    """Return the environment of the templates, which compiles each template only once."""
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


def plots_of(measures: Iterable[Drawn], sections: Mapping[str, Any], k: int) -> Plots:
    """Draw the plots of all measures that have a section on the page."""
    return {
        measure.name: measure.plots(sections[measure.name], k)
        for measure in measures
        if measure.on_page and sections.get(measure.name) is not None
    }


def _parts(evidence: Evidence, measures: Iterable[Drawn], drawn: Plots) -> Iterator[str]:
    for measure in measures:
        name = f"sections/{measure.name}.html"
        section = evidence.sections.get(measure.name)
        if section is None or not measure.on_page:
            continue
        try:
            template = _environment().get_template(name)
        except jinja2.TemplateNotFound as error:
            raise MicroguardError(
                f"The report of release {evidence.release.release_id}: expected the template {error.name} "
                f"of the measure {measure.name!r}, found none. Without it the page would omit a measure, so "
                "no page was written. Reinstall microguard, or add the template of the measure."
            ) from None
        part = template.render(
            section=section,
            plots={
                name: Markup(f'<div class="plot">{svg}</div>') for name, svg in drawn[measure.name].items()
            },
            release=evidence.release,
            counts=evidence.counts,
            units=f"{evidence.release.specification.get('method', {}).get('unit', 'record')}s",
        )
        yield _explained(part, PLAIN_WORDS.get(measure.name, ""))


def _explained(part: str, words: str) -> str:
    """Add the explanation to a section, below its heading or, if there is no heading, at its beginning."""
    if not words or not part.strip():
        return part
    plain = f'<p class="plain">{words}</p>'
    heading = re.match(r"\s*<h[23]>.*?</h[23]>", part, re.DOTALL)
    end = 0 if heading is None else heading.end()
    return f"{part[:end]}\n{plain}{part[end:]}"


def _open_risks(attacks: Iterable[Attack], k: int, keys: Collection[str] = ("unit",)) -> Iterator[str]:
    """Yield the risks that are large although all checks passed, each with a remedy.

    Parameters
    ----------
    keys : collection of str
        Keys of the method; without `unit`, it cannot count households.
    """
    for attack in attacks:
        least = 1 / max(k, 1) if attack.measure in ABOVE_ONE_IN_K else OPEN_RISK
        if attack.measure in TO_DO and attack.share > least:
            other = attack.measure == "household_risk" and "unit" not in keys
            to_do = NO_UNIT if other else TO_DO[attack.measure]
            yield f"{_apart(attack.sentence)} To do: {to_do}, or note why it is acceptable."


def _method_keys(specification: Mapping[str, Any]) -> Collection[str]:
    """Return the keys of the method of a specification of records."""
    method = BUILT_IN.get((specification.get("method") or {}).get("name") or "microaggregation")
    return () if method is None else method.keys


def _recodes(specification: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the variables that were recoded before protection, with their recodes in words."""
    for name, variable in specification.get("variables", {}).items():
        given = {key: variable[key] for key in RECODES if variable.get(key)}
        if given:
            yield name, recode_text(given)


def _named(verdict: Verdict) -> str:
    """Return the metric of a verdict in words."""
    return metric_in_words(MetricKey(verdict.metric, verdict.variable or "", verdict.dimension or 0))


def _moment(text: str | None) -> str:
    """Format a time in the ledger to the minute."""
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
    """Format a number with four digits, or with all digits before the decimal point, without an exponent."""
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
