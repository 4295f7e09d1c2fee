"""Tests of concepts of column names: quantities are no codes, kilograms no weight, accents are ignored."""

import pytest
from microguard.pipelines.drafting.names import concepts_of


@pytest.mark.parametrize(
    ("name", "concept", "says"),
    [
        ("pcs", "code", True),  # PCS is the French classification of occupations
        ("PCS2020", "code", True),
        ("pcs_ese", "code", True),
        ("qty_pcs", "code", False),  # the unit of this column is pieces
        ("pcs_sold", "code", False),
        ("MULT", "weight", True),
        ("multiplier", "weight", True),
        ("price_multiplier", "weight", False),
        ("income_mult", "weight", False),
        ("weight", "weight", True),
        ("person_weight", "weight", True),
        ("weight_kg", "weight", False),
        ("carcass_weight_kg", "weight", False),
        ("weightkg", "weight", False),
        ("Kreis", "place", True),
        ("Krankheit", "sensitive", True),
    ],
)
def test_concepts_of_reads_the_words_of_a_name_together(name, concept, says):
    assert (concept in concepts_of(name)) == says


@pytest.mark.parametrize(
    ("name", "concept"),
    [
        ("Pondération", "weight"),
        ("Région", "place"),
        ("Département", "place"),
        ("Ménage", "household"),
        ("Größe", "body"),  # groesse
        ("Staatsangehörigkeit", "visible"),
        ("Kön", "visible"),
        ("Län", "place"),
        ("FAMILIA_NUM", "household"),
        ("Ingresos", "income"),
        ("gndr", "visible"),
        ("cntry", "place"),
        ("Location Latitude", "coordinate"),
    ],
)
def test_concepts_of_ignores_accents_and_knows_words_of_common_surveys(name, concept):
    assert concept in concepts_of(name)
