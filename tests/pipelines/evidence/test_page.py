"""Tests of the report page: complete, self-contained, and rebuilt from the evidence alone."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from microguard.pipelines.evidence import page as evidence_page
from microguard.pipelines.evidence.evidence import Attack, read_evidence, write_evidence
from microguard.pipelines.evidence.page import PLAIN_WORDS, TO_DO, Page
from microguard.pipelines.measures.registry import MEASURES, measures_of
from microguard.pipelines.publication.ledger import Entry
from microguard.schemas.errors import MicroguardError

RISK = {
    "records": 100,
    "classes": 80,
    "classes_below_k": 70,
    "records_below_k": 85,
    "uniques": 60,
    "smallest": 1,
}
SAFE = {
    "records": 100,
    "classes": 20,
    "classes_below_k": 0,
    "records_below_k": 0,
    "uniques": 0,
    "smallest": 3,
}
TABLE = {
    "cells": 4,
    "chi2": 1.5,
    "max_absolute_error": 2,
    "max_relative_error": 0.5,
    "false_positives": 0,
    "chi2_false_positives": 0.0,
    "errors": {"0": 2, "1": 1, "2": 1},
}
QUALITY = {
    "release": {
        "release_id": "a" * 32, "name": "persons", "content": "records", "version": "1", "at": "2026-01-01",
        "k": 3, "seed": 1, "fingerprint": "0", "public_area": "lake", "promise": "k holds.",
        "limits": ["Not all."], "software": {"numpy": "2.4.6"}, "snapshot": None,
        "specification": {"variables": {"sex": {"role": "quasi_identifier"}}},
    },
    "counts": {"input": 101, "rejected": {"missing income": 1}, "suppressed": 0, "published": 100,
               "blocks": 2, "waiting": 0, "ghosts": 0},
    "risk": {"all": {"before": RISK, "after": SAFE}},
    "loss": {"all": {"sse": 1.0, "sst": 10.0, "information_loss": 0.1, "objective": 1.0,
                     "lower_bound": 0.9,
                     "whole_file_lower_bound": 0.2, "by_variable": {"income": 0.1, "age": 0.12},
                     "weighted_by": None, "trimmed": 0, "sampled": None}},
    "moments": {"income": {"mean_before": 1, "mean_after": 1, "variance_before": 2, "variance_after": 1.9}},
    "correlations": {"all": {"variables": ["income", "age"], "before": [[1, 0.5], [0.5, 1]],
                             "after": [[1, 0.6], [0.6, 1]],
                             "impact": {"correlation_change": 0.1, "correlation_change_deviation": 0.0,
                                        "weight_change": 0.03, "share_before": 0.75, "share_after": 0.8}}},
    "tables": [{"variables": ["sex"], "dimension": 1, "by_region": False, **TABLE}],
    "by_dimension": {"1": {"tables": 1, **TABLE}},
    "by_region": {"1": {"tables": 1, **TABLE}},
    "uniques_published": {
        "records": 100, "by_column": {"hours<script>": 7}, "jointly": 9, "by_sensitive": {}, "numbers": [],
    },
    "dominance": {"income": {"n": 1, "k": 85.0, "clusters": 20, "failing": 2, "forbidden": 1, "known": 0,
                             "records": 100, "of_one_value": 0}},
    "stages": {"read": 1.0, "protect": 2.0},
    "verdicts": [{"check": "release", "metric": "smallest_class", "variable": "all",
                  "dimension": None, "found": 3, "limit": 3, "passed": True,
                  "promised": True, "sense": "at least"}],
    "blocks": {
        "by_algorithm": [{"algorithm": "mdav", "blocks": 2, "records": 100, "optimal": 0, "fallback": 1}],
        "records": {"edges": [30, 40, 50], "counts": [2, 1]},
        "seconds": {"edges": [0.4, 0.5], "counts": [2]},
        "gaps": {"edges": [0, 1], "counts": [1]},
        "heuristic_gaps": {"all": {"mdav": 0.2, "simple": 0.05}},
        "certified": {"all": {"blocks": 0.5, "records": 0.4, "gap": 0.01}},
    },
}  # fmt: skip
#: Evidence without the measures that have plots.
PLAIN = {name: QUALITY[name] for name in ("release", "counts", "verdicts", "uniques_published")} | {
    "stages": {}
}
PUBLISHED = Entry("published", "a" * 32, "persons", "2026-01-02T03:04:05+00:00", {})


def page_of(folder, quality=QUALITY, entry=PUBLISHED):
    (folder / "quality.json").write_text(json.dumps(quality))
    evidence = read_evidence(folder, {measure.name: measure.section for measure in measures_of("records")})
    return Page(folder, evidence, measures_of("records")).write(entry).read_text()


def test_page_shows_plots_that_were_drawn_before(tmp_path):
    whole, evidence = page_of(tmp_path), read_evidence_of(tmp_path)
    drawn = evidence_page.plots_of(measures_of("records"), evidence.sections, evidence.release.k)
    assert Page(tmp_path, evidence, measures_of("records"), drawn).write(PUBLISHED).read_text() == whole


def test_evidence_is_unchanged_by_reading_and_writing(tmp_path):
    evidence = read_evidence_of(tmp_path)
    write_evidence(tmp_path / "again", evidence)
    assert json.loads((tmp_path / "again" / "quality.json").read_text()) == json.loads(json.dumps(QUALITY))


def read_evidence_of(tmp_path):
    (tmp_path / "quality.json").write_text(json.dumps(QUALITY))
    return read_evidence(tmp_path, {measure.name: measure.section for measure in measures_of("records")})


def test_page_shows_every_section_and_loads_no_other_file(tmp_path):
    page = page_of(tmp_path)
    for heading in (
        "What was found",
        "Records",
        "Risk before and after",
        "Control tables",
        "Control tables of regions",
        "Blocks",
        "Technical annex",
    ):
        assert re.search(rf'<h2 id="part-\d+">{heading}</h2>', page)
    assert page.count("<svg") == page.count('role="img" aria-label="') == 7
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert "<script" not in page


def test_every_measure_with_a_section_on_the_page_has_a_template():
    names = {each.name for content in MEASURES for each in measures_of(content) if each.on_page}
    templates = {path.stem for path in (Path(evidence_page.__file__).parent / "sections").glob("[!_]*.html")}
    assert names == templates


def test_page_with_a_missing_template_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(type(measures_of("records")[0]), "name", "risk_of_another_kind")
    with pytest.raises(MicroguardError, match=r"expected the template sections/risk_of_another_kind\.html"):
        page_of(tmp_path, {**PLAIN, "risk_of_another_kind": QUALITY["risk"]})
    assert not list(tmp_path.rglob("report.html"))


def test_page_of_a_refused_run_begins_with_the_refusal(tmp_path):
    refused = PLAIN | {"verdicts": [QUALITY["verdicts"][0] | {"passed": False}]}
    page = page_of(tmp_path, refused, None)
    assert "<strong>Refused.</strong>" in page
    assert re.search(r"<li>.+: found .+, expected .+</li>", banner(page)[1])
    assert "released by" not in page
    assert "<strong>Published</strong>" not in page


def test_release_unknown_to_the_ledger_is_not_called_published(tmp_path):
    assert "<strong>Published</strong> on 2026-01-02" in page_of(tmp_path, PLAIN)
    for entry in (None, replace(PUBLISHED, event="intended"), replace(PUBLISHED, event="abandoned")):
        page = page_of(tmp_path, PLAIN, entry)
        assert "<strong>Verified, not published.</strong>" in page
        assert "<strong>Published</strong>" not in page
    assert "<strong>Withdrawn</strong>" in page_of(tmp_path, PLAIN, replace(PUBLISHED, event="withdrawn"))


def test_page_is_equal_for_equal_evidence(tmp_path):
    assert page_of(tmp_path) == page_of(tmp_path)


def test_page_does_not_render_a_name_with_dollars_as_a_formula(tmp_path):
    loss = {"all": QUALITY["loss"]["all"] | {"by_variable": {"in_$ and out_$": 0.1}}}
    assert "in_$ and out_$" in page_of(tmp_path, QUALITY | {"loss": loss})


def test_page_begins_with_the_highest_risk_of_all_attackers(tmp_path):
    linked = {"sampled": 90, "of": 100, "linked": 0.4, "inside": {"income": 0.5}, "inside_all": 0.5}
    page = page_of(tmp_path, PLAIN | {"record_linkage": linked})
    worst = re.search(r'<p class="worst">(.*?)</p>', page).group(1)
    assert "in 40\N{NO-BREAK SPACE}% of the cases" in worst
    listed = page[page.index("What an attacker can learn") :]
    assert listed.index(worst) < listed.index(
        "identifies a single record in 9\N{NO-BREAK SPACE}% of the cases"
    )


def test_page_lists_contributors_of_dominated_clusters_as_attackers(tmp_path):
    page = page_of(tmp_path, PLAIN | {"dominance": QUALITY["dominance"]})
    assert "In 10\N{NO-BREAK SPACE}% of the clusters its largest contributor exceeds 85" in page
    nobody = {"income": QUALITY["dominance"]["income"] | {"failing": 0}}
    assert "of the clusters" not in page_of(tmp_path, PLAIN | {"dominance": nobody})


def test_page_does_not_report_a_limit_on_an_absent_measure_as_exceeded(tmp_path):
    keys = ("max_t", "min_entropy_diversity", "dominance", "max_information_loss", "max_new")
    specified = QUALITY["release"]["specification"] | {"quality": dict.fromkeys(keys)}
    release = {"release": QUALITY["release"] | {"specification": specified}}
    plain = page_of(tmp_path, QUALITY | release)
    assert "<code>dominance</code>, <code>max_information_loss</code>, <code>max_new</code>." in plain
    assert "max_t" not in plain
    homogeneity = {"records": 9, "homogeneous": 0, "least_distinct": 2, "least_entropy_diversity": 1.5,
                   "largest_t": 0.4, "guessed": 5}  # fmt: skip
    assert "<code>max_t</code>" in page_of(
        tmp_path, QUALITY | release | {"homogeneity": {"ill": homogeneity}}
    )


def test_page_shows_the_changes_of_small_counts_if_the_release_has_small_counts(tmp_path):
    kept = [[0] * 12 for _ in range(12)]
    kept[11][11] = 4
    moved = [list(row) for row in kept]
    moved[2][3] = 5
    part = {"sizes": [1, 100], "cells": [0, 4], "vanished": [0, 0], "records": [0, 0], "of_k_or_more": 0}
    section = {"1": part | {"transitions": kept}, "2": part | {"transitions": moved}}
    page = page_of(tmp_path, PLAIN | {"vanished": section})
    assert "Published values of small counts of dimension 1" not in page
    matrix = page.split("Published values of small counts of dimension 2")[-1].split("</table>")[0]
    assert re.findall(r"<tr><td>(\d+\+?)</td>", matrix) == ["2", "11+"]


def test_page_is_not_green_without_limits_on_disclosure(tmp_path):
    limit = QUALITY["verdicts"][0] | {"metric": "unique_jointly", "promised": False}
    accepted = dict.fromkeys(("max_unique_published", "max_unique_jointly", "max_homogeneous"), "the board")
    release = QUALITY["release"]
    for verdicts, limits, green in (
        ([limit], {}, True),
        ([], {}, False),
        ([limit], {"accept": accepted}, False),
        ([limit], {"accept": accepted, "max_unique_jointly": 1_000_000}, True),  # this value meets the limit
    ):
        specified = release["specification"] | {"quality": limits}
        quality = PLAIN | {
            "uniques_published": QUALITY["uniques_published"] | {"jointly": 1},
            "verdicts": [*QUALITY["verdicts"], *verdicts],
            "release": release | {"specification": specified},
        }
        page = page_of(tmp_path, quality)
        assert ('<div class="banner waiting">' not in page) is green
        assert ("No limit on disclosure applied" not in page) is green


def test_page_draws_no_histogram_of_one_bin(tmp_path):
    alone = QUALITY["blocks"] | {"records": {"edges": [40, 50], "counts": [1]}}
    page = page_of(tmp_path, QUALITY | {"blocks": alone})
    assert page.count("<svg") == 6


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.012345, "0.01235"),
        (3.5e-5, "below 0.001"),
        (0, "0"),
        (999.96, "1000"),
        (1234.5, "1 234"),
        (429_712_345.6, "429 712 346"),
        (None, "-"),
    ],
)
def test_page_shows_a_large_number_with_its_digits(value, shown):
    assert evidence_page._number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.2049, "20.5 %"),
        (2e-6, "below 0.001 %"),
        (9.99, "999 %"),
        (9.997, "1 000 %"),
        (441.23, "44 123 %"),
        (None, "-"),
    ],
)
def test_page_never_shows_a_share_as_a_power_of_ten(share, shown):
    assert evidence_page._percent(share).replace("\N{NARROW NO-BREAK SPACE}", " ") == shown


def test_page_states_a_limit_in_plain_words_with_its_direction(tmp_path):
    metric = {"metric": "unique_published", "variable": "weight", "found": 0.004, "limit": 0.01}
    limit = QUALITY["verdicts"][0] | metric | {"promised": False, "sense": "at most"}
    page = page_of(tmp_path, PLAIN | {"verdicts": [limit]})
    assert "<td>share of records unique with weight</td>" in page
    assert '<td class="n">at most 0.01</td>' in page


def test_page_of_a_table_states_its_limits_and_cells(tmp_path):
    specified = {"quality": {"max_t": None}, "table": {"quality": {"max_gap": None, "min_interval": 1.0}}}
    release = PLAIN["release"] | {"content": "table", "specification": specified}
    page = page_of(tmp_path, PLAIN | {"release": release})
    assert "cells published" in page


@pytest.mark.parametrize(
    ("metrics", "unlimited"), [({"gap": 0.1, "total_adjustment": 0.1}, ["max_gap"]), (None, [])]
)
def test_page_of_a_table_names_only_missing_limits_on_figures_that_the_release_has(
    tmp_path, metrics, unlimited
):
    specified = {
        "quality": {"max_t": None},
        "table": {"quality": {"max_gap": None, "max_cell_adjustment": None}},
    }
    release = PLAIN["release"] | {"content": "table", "specification": specified}
    measured = {} if metrics is None else {"metrics": metrics}
    (tmp_path / "quality.json").write_text(json.dumps(PLAIN | {"release": release} | measured))
    measures = measures_of("table")
    evidence = read_evidence(tmp_path, {measure.name: measure.section for measure in measures})
    page = Page(tmp_path, evidence, measures).write(PUBLISHED).read_text()
    found = re.search(r'<p class="unlimited">.*?</p>', page)
    assert re.findall(r"<code>(\w+)</code>", found.group() if found else "") == unlimited


def with_dominance(failing):
    dominance = {"income": QUALITY["dominance"]["income"] | {"failing": failing}}
    return PLAIN | {"dominance": dominance}


def banner(page):
    return re.search(r'<div class="banner (.*?)">(.*?)</div>', page, re.DOTALL).groups()


LIMITED = {"check": "release", "metric": "unique_jointly", "variable": None, "dimension": None, "found": 0.01,
           "limit": 0.05, "passed": True, "promised": False, "sense": "at most"}  # fmt: skip


@pytest.mark.parametrize(("failing", "colour"), [(0, ""), (8, "waiting")])
def test_published_page_is_amber_for_an_open_risk_and_states_what_to_do(tmp_path, failing, colour):
    unique = QUALITY["uniques_published"] | {"jointly": 1}
    quality = with_dominance(failing) | {
        "verdicts": [*QUALITY["verdicts"], LIMITED],
        "uniques_published": unique,
    }
    found, text = banner(page_of(tmp_path, quality))
    assert found.strip() == colour
    assert ("40 % of the clusters" in text.replace("\N{NO-BREAK SPACE}", " ")) == bool(failing)
    assert ("set quality.dominance" in text) == bool(failing)


@pytest.mark.parametrize(
    ("event", "heading", "state"),
    [
        ("published", "What was found", "Published"),
        ("waiting", "Before you sign", "Waiting for approval"),
        ("rejected", "What was found", "Rejected"),
        ("withdrawn", "What was found", "Withdrawn"),
        (None, "Before you sign", "Verified, not published."),
    ],
)
def test_heading_and_state_of_the_page_follow_the_ledger(tmp_path, event, heading, state):
    page = page_of(tmp_path, PLAIN, None if event is None else replace(PUBLISHED, event=event))
    others = {"What was found", "Before you sign"} - {heading}
    assert f">{heading}</h2>" in page
    assert not any(f">{other}</h2>" in page for other in others)
    assert f"<strong>{state}</strong>" in page
    assert ("released by" in page) == (heading == "Before you sign")


@pytest.mark.parametrize(("share", "open"), [(0.33, []), (0.46, ["method.unit"])])
def test_page_reports_households_identified_more_often_than_one_in_k_as_an_open_risk(share, open):
    found = [*evidence_page._open_risks([Attack(share, "Found.", "household_risk")], 3)]
    assert ["method.unit" for each in found if "method.unit" in each] == open


def test_page_advises_a_key_of_the_method_for_the_risk_of_households():
    attack = Attack(0.46, "Found.", "household_risk")
    assert evidence_page._method_keys({"method": {"name": "swapping"}}) == ("roles.risk",)
    assert "choose a method" in next(evidence_page._open_risks([attack], 3, ("roles.risk",)))
    assert "choose a method" not in next(
        evidence_page._open_risks([attack], 3, evidence_page._method_keys({"method": {}}))
    )


def test_page_of_a_series_reconciles_the_records_read_with_those_published(tmp_path):
    counts = QUALITY["counts"] | {"input": 252, "published": 256, "waiting": 8, "ghosts": 12}
    rows = re.findall(
        r"<tr><td>([^<]*)</td><td class=\"n\">(\d+)</td></tr>", page_of(tmp_path, PLAIN | {"counts": counts})
    )
    assert {"waiting for a later release": "8", "retained although not read": "12"}.items() <= dict(
        rows
    ).items()


def test_page_has_a_caption_per_table_a_scope_per_header_and_a_link_per_part(tmp_path):
    page = page_of(tmp_path)
    assert page.count("<table") == page.count("<caption") > 5
    assert page.count("<th ") == page.count('<th scope="col"') > 10
    assert "<th>" not in page
    anchors = re.findall(r'<h2 id="(part-\d+)">', page)
    assert re.findall(r'<a href="#(part-\d+)">', page) == anchors
    assert len(anchors) > 5
    assert '<caption class="heard">Disclosure by published means</caption>' in page
    assert re.search(r"<summary>(All \d+ checks)</summary>\s*<table[^>]*><caption class=\"heard\">\1<", page)


def test_page_explains_every_section_in_plain_words(tmp_path):
    folder = Path(evidence_page.__file__).parent / "sections"
    drawn = {path.stem for path in folder.glob("[!_]*.html")}
    # these two sections continue the previous section
    assert drawn - {"tables", "metrics"} == set(PLAIN_WORDS)
    assert set(TO_DO) <= drawn
    page = page_of(tmp_path)
    for name in ("loss", "dominance", "by_dimension"):
        assert page.count(PLAIN_WORDS[name]) == 1
    assert page.index(PLAIN_WORDS["loss"]) > page.index(">Loss of the numeric variables</h2>")
