"""Tests of the verb ``audit`` without releases to audit."""

from microguard.pipelines.joint_audit import audit_source

from tests.pipelines.microdata import specification


def test_audit_distinguishes_an_unpublished_source_from_a_safe_one(tmp_path):
    outcome = audit_source(specification(tmp_path))
    assert (
        outcome.text
        == "No release of the source 'persons' has been published yet, so there is nothing to audit."
    )
    assert outcome.content["units"] == 0
