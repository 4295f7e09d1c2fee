"""The minimality attack fails where hidden values are concealed, and succeeds where they are not."""

from tests.benchmarks.minimality import attacked


def test_clusters_that_were_not_made_tell_hidden_values_unless_they_are_concealed():
    bare = attacked(1_200, 3, 2, False, 0)
    assert bare.right >= 0.95
    assert bare.expected < 0.75
    concealed = attacked(1_200, 3, 2, True, 0)
    assert concealed.right < concealed.expected + 0.2
    assert concealed.loss < 1.15 * bare.loss
