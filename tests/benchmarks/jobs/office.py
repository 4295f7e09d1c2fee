"""An agency with one or two specifications, and the permitted results of its publications."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from microguard.schemas.specification.model import Specification
from microguard.schemas.specification.read import build_specification

from tests.benchmarks.registers.agency import NO_LIMITS
from tests.benchmarks.registers.stream import UNIT, correct, people, roles
from tests.pipelines.microdata import content

#: Part of every region's name, which no message may contain.
CANARY = "CANARY"


@dataclass
class Office:
    """One specification, and the state of its releases.

    Attributes
    ----------
    kind : {"single", "register", "append", "table"}
    states : dict of str to str
        State of each release in the order of publication: "stands" (current), "waits" (pending), "rejected"
        or "withdrawn".
    made : dict of str to str
        Id of a single release by its input and settings.
    """

    folder: Path
    content: dict[str, Any]
    kind: str
    night: int = 0
    states: dict[str, str] = field(default_factory=dict)
    made: dict[str, str] = field(default_factory=dict)
    first: str = ""
    calm: bool = True

    @property
    def spec(self) -> Specification:
        return build_specification(self.content, self.folder)

    @property
    def name(self) -> str:
        return str(self.content["release"]["name"])

    @property
    def public(self) -> Path:
        return self.folder / str(self.content["publish"]["path"])

    @property
    def evidence(self) -> Path:
        return self.folder / str(self.content["publish"]["evidence"])

    @property
    def approval(self) -> bool:
        return "approval" in self.content["publish"]

    @property
    def accepts(self) -> bool:
        return "successive" in self.content["publish"]

    @property
    def what(self) -> str:
        return "night {}, k = {k}, seed {seed}".format(self.night, **self.content["release"])

    def of(self, state: str) -> list[str]:
        return [release_id for release_id, known in self.states.items() if known == state]

    def now(self, release_id: str, state: str) -> None:
        self.states.pop(release_id, None)
        self.states[release_id] = state


def agency(random: np.random.Generator, folder: Path) -> tuple[list[Office], list[pd.DataFrame]]:
    """Draw specifications with common properties, and the inputs of their updates."""
    kind = str(random.choice(["single", "register", "register", "append", "table"]))
    variables = str(random.choice(["numeric", "nominal", "mixed"]))
    nights = list(_nights(random, kind, variables))
    publish: dict[str, Any] = {"path": "lake", "evidence": "evidence"}
    if kind != "table":
        publish["format"] = str(random.choice(["parquet", "delta", "iceberg"]))
    if kind in ("register", "append"):
        publish["series"] = kind
    elif random.random() < 0.7:
        publish["successive"] = "accept"
    if random.random() < 0.4:
        publish["approval"] = "required"
    if random.random() < 0.4 and {"series", "successive"} & set(publish):
        publish["keep"] = 2
    other = str(random.choice(["", "", "", "", "", "name", "evidence", "lake"]))
    if other == "lake" or random.random() < 0.2:
        publish["ledger"] = "shared"
    offices = [_office(folder, kind, variables, publish)]
    if other:
        beside = {"evidence": "elsewhere"} if other != "name" else {}
        beside |= {"path": "pond"} if other == "lake" else {}
        offices.append(_office(folder, kind, variables, publish | beside, name="others"))
    return offices, nights


def _nights(random: np.random.Generator, kind: str, variables: str) -> Iterator[pd.DataFrame]:
    """Draw persons; for event streams about half of them, because most are new."""
    everybody = people(variables, 100, 300, random)
    everybody["region"] = random.choice([f"{CANARY}0", f"{CANARY}1"], len(everybody))
    there = np.arange(len(everybody)) < 100
    for _ in range(4):
        tonight = everybody[there].reset_index(drop=True)
        yield tonight if kind != "append" else tonight.iloc[random.permutation(len(tonight))[:60]]
        there = there ^ (random.random(len(there)) < 0.15)
        few = np.flatnonzero(random.random(len(there)) < 0.05)
        correct(everybody, few, variables, random)


def _office(
    folder: Path, kind: str, variables: str, publish: dict[str, Any], name: str = "persons"
) -> Office:
    sections: dict[str, Any] = {
        "release": {"name": name, "k": 3, "seed": 1},
        "input": {"path": "input.parquet"},
        "publish": publish,
    }
    if kind == "table":
        table = {"kind": "frequency", "tables": [["region", "diagnosis"]], "effort": "fast"}
        given = {UNIT: {"role": "unit"}, "region": {"role": "region"}, "diagnosis": {"role": "other"}}
        sections["input"]["unmentioned"] = "drop"
        made = {**sections, "variables": given, "table": table}
        return Office(folder, made, kind)
    if kind == "register":
        sections["series"] = NO_LIMITS
    sections |= {"method": {"effort": "fast"}, "missing": {"max_rejected": 100}}
    return Office(folder, content(roles(variables), **sections), kind)


def expected(office: Office, offices: Sequence[Office], verb: str) -> set[str]:
    """Return the permitted results of a publication."""
    made = office.made.get(office.what)
    if office.kind in ("single", "table"):
        if verb == "rebase" and office.kind == "single":
            return {"SpecificationError"}
        if office.states.get(made or "") in ("stands", "waits"):
            return {"already"} if office.states[made or ""] == "stands" else {"waits already"}
    elif verb == "rebase" and office.kind == "append":
        return {"SpecificationError"}
    refused = _refused(office, offices, made)
    done = {"waits"} if office.approval else {"published"}
    if office.kind == "append":
        done |= {"InputRejected", "already"}
    if office.kind == "register":
        other_plan = "GateRefused" if office.what[7:] != office.first else "nothing new"
        done |= {"nothing new", other_plan} | ({"GateRefused"} if verb == "rebase" else set())
    if office.kind in ("register", "append") and office.of("waits"):
        done, refused = {"waits already", "InputRejected"}, None
    return (
        {"GateRefused", "InputRejected"}
        if refused
        else done | ({"GateRefused"} if refused is None else set())
    )


def _refused(office: Office, offices: Sequence[Office], release_id: str | None) -> bool | None:
    """Return whether earlier releases conflict with a release, or None if both results are permitted."""
    alone = office.kind in ("single", "table")
    if alone and set(office.of("stands")) - {release_id} and not office.accepts:
        return True
    may = False
    for other in offices:
        if other is office:
            continue
        here = other.evidence == office.evidence
        if other.public == office.public and other.of("stands") and (here or not office.accepts):
            return True
        seen = [*other.of("stands"), *other.of("withdrawn"), *other.of("abandoned")]
        known = here or "ledger" in office.content["publish"]
        may |= bool(seen) and known and not office.accepts and not (here and office.kind == "table")
    return None if may else False


def overtaken(office: Office, offices: Sequence[Office], verb: str, target: str) -> set[str]:
    if verb == "reject" or office.states.get(target) != "waits":
        return set()
    return (
        set()
        if _refused(office, offices, target) is False and office.kind in ("single", "table")
        else {"GateRefused"}
    )
