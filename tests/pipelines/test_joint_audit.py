"""The verb ``audit`` where there is nothing to audit."""

from microguard.pipelines.joint_audit import audit_source

from tests.pipelines.microdata import specification


def test_a_source_of_which_nothing_was_published_is_told_apart_from_one_that_is_safe(tmp_path):
    outcome = audit_source(specification(tmp_path))
    assert outcome.text == "Nothing was published of the source 'persons' yet: there is nothing to audit."
    assert outcome.content["units"] == 0
