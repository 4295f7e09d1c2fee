"""Tests of updates stored in folders by region and as CSV: publication, joint audit, approval, withdrawal."""

from __future__ import annotations

import pandas as pd
import pyarrow.dataset as ds
import pytest
from microguard.pipelines.audit.release import audit
from microguard.pipelines.joint_audit import audit_source
from microguard.pipelines.publication.ledger import Ledger
from microguard.pipelines.series import source, verified_maps
from microguard.pipelines.withdraw import withdraw

from tests.pipelines.microdata import NOMINAL
from tests.pipelines.series.test_append import Stream
from tests.pipelines.series.test_register import Series, alike, nights, population

pytestmark = pytest.mark.spark
LAYOUT = {"partition_by": "region", "csv": True}


class PartitionedStream(Stream):
    def spec(self, **missing):
        spec = super().spec(**missing)
        return spec.model_copy(update={"publish": spec.publish.model_copy(update=LAYOUT)})


def regions(folder):
    return {path.name for path in (folder / "microdata").iterdir()}


def rows(folder):
    return ds.dataset(folder / "microdata", partitioning="hive").to_table().to_pandas()


@pytest.mark.long
def test_register_updates_are_published_in_folders_by_region(spark, tmp_path, monkeypatch):
    register = Series(spark, tmp_path, **LAYOUT)
    register.measures = ()
    first, second, third, *_ = nights(pd.concat([population(), alike()], ignore_index=True))
    reports = [register.night(first), register.approved_night(second)]
    asked = []
    describes = source.Members.describes
    monkeypatch.setattr(source.Members, "describes", lambda *each: asked.append(each) or describes(*each))
    reports.append(register.night(third))
    assert len(asked) == 1  # the evidence records the maps of earlier updates as verified
    folders = register.folders()
    assert [len(rows(folder)) for folder in folders[:2]] == [80, 120]
    for folder in folders:
        assert regions(folder) == {"region=north", "region=south"}
        assert audit(folder).passed
        lines = pd.read_csv(folder / "microdata.csv")
        names = list(lines.columns)
        pd.testing.assert_frame_equal(
            lines.sort_values(names, ignore_index=True),
            rows(folder)[names].astype({"region": object}).sort_values(names, ignore_index=True),
        )
    assert audit_source(register.spec).content["smallest_history"] >= 3
    assert verified_maps.checksums_of(folders[0]).keys() == {
        f"microdata/{name}/part-00000.parquet" for name in regions(folders[0])
    }
    withdraw(str(folders[-1]))
    assert not folders[-1].exists()
    assert len(Ledger(register.areas).published()) == 2


def test_appended_updates_of_key_combinations_are_published_in_folders_by_region(spark, tmp_path):
    roles = {name: NOMINAL[name] for name in ("person", "region", "sex", "diagnosis", "weight")}
    stream = PartitionedStream(spark, tmp_path, roles | {"income": {"role": "identifier"}})
    everybody = population()
    ids = [stream.night(night)["release_id"] for night in (everybody.iloc[:60], everybody.iloc[60:])]
    assert stream.manifest(ids[1])["series"]["releases"] == ids
    folders = [stream.areas.public.release(each) for each in ids]
    assert [len(rows(folder)) for folder in folders] == [60, 60]
    assert all(regions(folder) == {"region=north", "region=south"} for folder in folders)
    assert all(audit(folder).passed for folder in folders)
    exposure = audit_source(stream.spec()).content
    assert exposure["units"] == 120
    assert exposure["smallest_history"] >= 3
    withdraw(str(folders[0]))
    assert not folders[0].exists()
    assert audit(folders[1]).passed
