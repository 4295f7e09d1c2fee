"""Tests that the random draws of a clustering cannot be predicted."""

from types import SimpleNamespace

from microguard.pipelines.records.protect_by_microaggregation import secret_seed


def specification(seed):
    return SimpleNamespace(release=SimpleNamespace(seed=seed))


def test_secret_seed_depends_on_the_input_and_the_seed():
    one, other = SimpleNamespace(fingerprint="a"), SimpleNamespace(fingerprint="b")
    seeds = [secret_seed(given, specification(seed)) for given in (one, other) for seed in (7, 8)]
    assert len(set(seeds)) == 4
    assert min(seeds) > 2**32
    assert secret_seed(one, specification(7)) == seeds[0]
