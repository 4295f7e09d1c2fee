"""What a clustering is asked of: the seed of the specification, or one that nobody can guess."""

from types import SimpleNamespace

from microguard.pipelines.records.protect_by_microaggregation import secret_seed


def specification(seed, min_diversity):
    return SimpleNamespace(
        release=SimpleNamespace(seed=seed), method=SimpleNamespace(min_diversity=min_diversity)
    )


def test_the_seed_follows_from_the_input_where_sensitive_values_are_concealed():
    one, other = SimpleNamespace(fingerprint="a"), SimpleNamespace(fingerprint="b")
    assert secret_seed(one, specification(7, 1)) == secret_seed(other, specification(7, 1)) == 7
    seeds = [secret_seed(given, specification(seed, 2)) for given in (one, other) for seed in (7, 8)]
    assert len(set(seeds)) == 4
    assert min(seeds) > 2**32
    assert secret_seed(one, specification(7, 2)) == seeds[0]
