"""Tests of a run whose specification names a catalogue."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from microguard.pipelines.publication.areas import areas_of
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.verify import verify
from microguard.pipelines.withdraw import withdraw
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.pipelines.microdata import persons, published, run, specification


def test_run_publishes_into_a_catalogue_and_withdraw_removes_the_release_from_it(spark, tmp_path):
    persons().to_parquet(tmp_path / "data", index=False)
    publish = {"format": "iceberg", "catalog": "sqlite:///catalog.db", "table": "statistics.persons"}
    spec = specification(tmp_path, publish=publish)
    assert areas_of(spec).public.releases() == []
    outcome, areas = run(spark, spec, ())
    release_id = outcome.content["release_id"]
    catalog = load_catalog(uri=f"sqlite:///{tmp_path}/catalog.db")
    found = catalog.load_table("statistics.persons").scan().use_ref(release_id).to_arrow().to_pandas()
    expected = published(areas)
    found = found.sort_values(list(expected.columns), ignore_index=True)[expected.columns]
    pd.testing.assert_frame_equal(found.astype(object), expected.astype(object))
    manifest = json.loads((areas.public.release(release_id) / "manifest.json").read_text())
    assert manifest["catalog_table"] == "statistics.persons"
    assert str(tmp_path) not in json.dumps(manifest)
    assert Ledger(areas).status(release_id).catalog == spec.catalog
    assert "fulfils what its manifest promises" in verify(str(areas.public.release(release_id))).text
    withdraw(str(areas.record(release_id)))
    with pytest.raises(NoSuchTableError):
        catalog.load_table("statistics.persons")
    assert [path.name for path in areas.public.folder.rglob("*") if path.is_file()] == [".area.json"]
