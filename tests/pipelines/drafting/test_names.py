"""Tests of concepts of column names: quantities are no codes, and kilograms are no sampling weight."""

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
