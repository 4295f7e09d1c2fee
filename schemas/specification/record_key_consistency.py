"""Refuse keys for the protection of records if a specification has a table and no records to protect."""

from __future__ import annotations

from collections.abc import Iterator

from microguard.schemas.specification.faults import Fault, fault
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.table import Table

OF_RECORDS = ("method", "quality", "blocking", "population", "rules", "groups")
"""Sections of which a table uses no key."""
PROMISE_NOTHING = {
    ("method", "effort"),
    ("method", "algorithm"),
    ("blocking", "max_records"),
    ("quality", "accept"),
}
"""Keys of these that promise nothing: they are allowed, although a table ignores them."""
OF_RELEASES_OF_RECORDS = ("accept_dependencies", "disclose", "series")
"""Keys of `[publish]` that a table ignores."""


def record_key_faults(spec: Specification, table: Table) -> Iterator[Fault]:
    """Refuse keys that promise protection but would be ignored, because there are no records to protect.

    Keys that have their default value promise nothing. A specification with quasi-identifiers may have all
    these keys, because `microguard protect` uses them.
    """
    if spec.quasi_identifiers:
        return
    allowed = "no such key without a variable of role quasi_identifier, because no table uses it"
    content = spec.model_dump(mode="json", exclude_defaults=True)
    for section in OF_RECORDS:
        given = content.get(section)
        if isinstance(given, dict):
            for key, value in given.items():
                if (section, key) not in PROMISE_NOTHING:
                    yield fault((section, key), value, allowed)
        elif given:
            yield fault((section,), [each["name"] for each in given], allowed)
    for name in table.numbers:
        recodes = spec.variables[name].recodes if name in spec.variables else {}
        for key in sorted(set(recodes) - {"missing"}):
            allowed_of = "no such key for a column that a table sums: its totals are those of the file"
            yield fault(("variables", name, key), recodes[key], allowed_of)
    for key in OF_RELEASES_OF_RECORDS:
        if key in content["publish"]:
            yield fault(("publish", key), content["publish"][key], allowed)
