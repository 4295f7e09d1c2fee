"""Removal of classes that an earlier release of the source already published with the same members and
values.

A class that is repeated with the same members and the same known values changes no history. A series in which
most classes are repeated can therefore be audited with the new classes of each release alone, which saves
memory. This is valid only if every history has at least k units (`all_histories_have_k`). Otherwise the
totals of releases must be compared, which requires all classes of the releases.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
from microguard.pipelines.audit.differencing.classes import Classes
from microguard.pipelines.audit.differencing.corrected import views
from microguard.pipelines.audit.differencing.histories import histories, mix_bits
from microguard.pipelines.audit.differencing.members import Members

#: Salts of the two 64-bit hashes of a class.
_SALTS = (4, 5)


class SeenClasses:
    """Hashes of the classes of all releases read so far."""

    def __init__(self) -> None:
        self._hashes = np.zeros((2, 0), np.uint64)
        self._places = pd.Index(self._hashes[0])
        #: Whether any class occurred more than once.
        self.any = False

    def new_in(self, members: Members) -> Members:
        """Return the map without repeated classes; if the release has several groups, return the map
        unchanged.
        """
        if len(members.about["groups"]) > 1:
            return members
        class_of, alike = members.labels(0)
        hashes = _hashes(members, class_of, alike)
        place = self._places.get_indexer(hashes[0])
        before = (place >= 0) & (np.append(self._hashes[1], np.uint64(0))[place] == hashes[1])
        self.any |= bool(before.any())
        self._hashes = np.concatenate([self._hashes, hashes[:, ~before]], axis=1)
        self._places = pd.Index(self._hashes[0])
        records, rows = ~before[class_of], ~before[alike]
        units = members.units[records].reset_index(drop=True)
        table = members.classes[0].filter(pa.array(rows))
        return replace(members, unit=members.unit[records], units=units, classes=(table,))


def _hashes(members: Members, class_of: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Return two hashes of each class, (2, c): sums over its members and rows, so that their order has no
    effect.
    """
    about = {name: value for name, value in members.about.items() if name != "release_id"}
    kind = pd.util.hash_array(np.array([json.dumps(about, sort_keys=True)], dtype=object))[0]
    columns = [members.units[name] for name in sorted(members.units.columns) if name != "class0"]
    table = members.classes[0].select(sorted(set(members.classes[0].column_names) - {"__class"}))
    shown = pd.util.hash_pandas_object(table.to_pandas(strings_to_categorical=True), index=False).to_numpy()
    hashes = np.zeros((2, int(alike.max(initial=-1)) + 1), np.uint64)
    for row, salt in enumerate(_SALTS):
        known = mix_bits(members.unit ^ kind, salt)
        for column in columns:
            known = mix_bits(known + _bits(column), salt)
        np.add.at(hashes[row], class_of, known)
        np.add.at(hashes[row], alike, mix_bits(shown, salt))
    return hashes


def _bits(column: pd.Series) -> np.ndarray:
    """Return the values as uint64; equal values have equal bits."""
    values = column.to_numpy()
    return values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.int64).view(np.uint64)


def all_histories_have_k(releases: Sequence[Classes]) -> bool:
    """Return whether all releases have one clustering, and each history has at least k units and k
    records.
    """
    if not releases or len({tuple(sorted(each.variables)) for each in releases}) > 1:
        return False
    most = max(each.k for each in releases)
    for view, by_record in ((releases, False), *((view, True) for view in views(releases))):
        numbers = [each.record if by_record else each.unit for each in view]
        members = 1 + max(int(each.max(initial=-1)) for each in numbers)
        sizes = histories(view, members, by_record=by_record).sizes
        if sizes.min(initial=most) < most:
            return False
    return True
