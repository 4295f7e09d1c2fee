"""Tables and figures of the four papers that microguard implements, with the papers' figures for comparison.

Each paper has a page of the manual in `docs/benchmarks`, which is written table by table. A quick run does
not change the manual and writes to `build/benchmarks/pages`. After a kill, the next call with the same code
continues. Times are CPU seconds of one core. Every result is checked before it is shown. A failed check does
not stop other tables: it is written below its table, and the exit code is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from microguard.sdc.precompile import precompile

from tests.benchmarks.cost2023 import chapter_six
from tests.benchmarks.microaggregation import papers_2002, papers_2020
from tests.benchmarks.misses import Misses
from tests.benchmarks.paper_pages import Page, Section
from tests.benchmarks.parts import Parts
from tests.benchmarks.table import Table
from tests.benchmarks.tabular.figures import figures
from tests.benchmarks.tabular.kept_statistics import kept_statistics

#: Page, heading, and introduction of the page.
PAGES = {
    "cost_2023": (
        "Cost 2023: k-anonymity of nominal data",
        "Chapter 6 of *An integer optimization approach to k-anonymity on nominal data* (Trier), with all "
        "its tables and figures. The thesis prints its figures as plots without numbers, so the statements "
        "of its text about them are below each table. Ten instances per scenario, k = 3, control tables to "
        f"dimension 3. From Table 6.8 on and in Figures 6.5 to 6.8, the first {chapter_six.PROTECTED} of "
        "each scenario (the thesis: ten). Times are CPU seconds of one core here, and wall-clock seconds of "
        "a Core i3-8100 with SCIP and Gurobi there.",
    ),
    "domingo_ferrer_2002": (
        "Domingo-Ferrer, Mateo-Sanz 2002: microaggregation",
        "Tables 1 to 4 of *Practical data-oriented microaggregation* (IEEE TKDE 14(1)) with the paper's "
        "data. Each figure is asserted within the digits that the paper prints.",
    ),
    "gentile_2020": (
        "Gentile, Spagnolo-Arrizabalaga, Castro 2020: column generation",
        "Tables 3 and 4 of *An algorithm for the microaggregation problem using column generation* (CNR-IASI "
        "R. 20-02). The subsets of the paper are not published; ours are drawn by the criteria that it "
        "names.",
    ),
    "cox_2005": (
        "Cox 2005: controlled tabular adjustment",
        "Figures 1 to 4 of *Confidentiality protection by controlled tabular adjustment using metaheuristic "
        "methods* (UNECE WP. 32) and its quality constraints. The paper prints curves without numbers; its "
        "statements about them are below each table.",
    ),
}
SEEDS = (1, 2, 3)


def run(quick: bool = False) -> Iterator[Table]:
    """Return all tables; quick: few and small instances of each, and no page of the manual."""
    precompile()
    misses = Misses()
    name = "papers-quick" if quick else "papers"
    parts = Parts(name, "cost2023", "combinations", "microaggregation", "tabular", rooms=("sdc",))
    makers: tuple[Callable[[], Sequence[Section]], ...] = (
        partial(chapter_six.tables, parts, misses, quick),
        partial(papers_2002.tables, misses, quick),
        partial(papers_2020.tables, parts, misses, quick),
        partial(_cox, parts, quick),
    )
    for (page, (heading, introduction)), make in zip(PAGES.items(), makers, strict=True):
        yield from _written(Page(page, heading, introduction, quick), make(), misses)
    parts.forget()
    misses.fail()


def _written(page: Page, sections: Sequence[Section], misses: Misses) -> Iterator[Table]:
    """Measure the tables of a page one by one, and write the page after each."""
    page.expected = tuple(section.title for section in sections)
    for section in sections:
        measured = section.run(misses)
        page.add(measured)
        yield measured.table
    page.finish()


def _cox(parts: Parts, quick: bool) -> list[Section]:
    seeds = SEEDS[:1] if quick else SEEDS
    return [Section("Quality constraints", partial(kept_statistics, parts, seeds)),
            *figures(parts, quick, seeds)]  # fmt: skip
