"""Tests of kept cells: the search on key combinations preserves them; other searches refuse the key."""

import numpy as np
import pandas as pd
import pytest
from microguard.pipelines.records.combinations import Combinations, protected_counts
from microguard.pipelines.records.joint_representatives import MOST_RECORDS, chosen_together
from microguard.schemas.errors import ProtectionFailed
from microguard.sdc.nominal.frequency import from_frame

from tests.pipelines.microdata import specification

QUASI = {"role": "quasi_identifier", "kind": "nominal"}


@pytest.mark.parametrize(("kept_dimension", "kept"), [(0, False), (1, True)])
def test_rare_category_is_kept_if_specified(kept_dimension, kept, tmp_path):
    frame = pd.DataFrame([("x", b) for b in "pqrst"] * 10 + [("y", b) for b in "pqrst"], columns=["a", "b"])
    tables = {"kept_dimension": kept_dimension}
    method = {"effort": "fast", "control_tables": tables}
    asked = specification(tmp_path, {"a": QUASI, "b": QUASI}, method=method, release={"name": "few", "k": 5})
    frequencies = from_frame(frame).frequencies
    occurring = Combinations(frequencies, (), np.empty((0, 2), np.int64))
    counts, _ = protected_counts(None, occurring, asked.clusterings[0], asked)
    assert ((counts == 0) | (counts >= 5)).all()
    assert bool(counts[frequencies.codes[:, 0] == 1].any()) == kept


def test_kept_cells_are_refused_for_too_many_records(tmp_path):
    roles = {"a": QUASI, "b": QUASI, "n": {"role": "quasi_identifier", "kind": "numeric"}}
    free, kept = (
        specification(tmp_path, roles, method={"control_tables": {"kept_dimension": dimension}})
        for dimension in (0, 1)
    )
    assert not chosen_together(free.clusterings[0], free, MOST_RECORDS + 1)
    assert chosen_together(kept.clusterings[0], kept, MOST_RECORDS)
    with pytest.raises(ProtectionFailed, match="500,001 records"):
        chosen_together(kept.clusterings[0], kept, MOST_RECORDS + 1)
