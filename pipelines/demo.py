"""Demo: write synthetic data of a town and its specification, and protect the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
from microguard.pipelines.engine.command_result import CommandResult
from microguard.pipelines.engine.extras import OF_A_RELEASE, require_extras
from microguard.pipelines.engine.progress import Progress
from microguard.pipelines.synthetic.dataset import generate_persons
from microguard.schemas.errors import SpecificationError
from microguard.schemas.specification.read import read_specification

SEED = 2026
K = 3
PART = "persons-{number:05d}.parquet"

Kind = Literal["mixed", "nominal", "numeric"]

#: The weight has few distinct values, but with it one record in three would be unique; it is not published.
NEVER_PUBLISHED = {
    "person_id": "unit", "name": "identifier", "household": "household", "weight": "identifier",
}  # fmt: skip
#: Nominal variables are protected by frequencies, without clusters, so that l-diversity cannot be required.
PUBLISHED_AS_IT_IS: dict[Kind, dict[str, str]] = {
    "mixed": {"region": "region", "diagnosis": "sensitive"},
    "nominal": {"region": "region", "diagnosis": "identifier"},
    "numeric": {"region": "region", "diagnosis": "sensitive"},
}
MIN_DIVERSITY: dict[Kind, int] = {"mixed": 2, "nominal": 1, "numeric": 2}
QUASI_IDENTIFIERS: dict[Kind, dict[str, str]] = {
    "mixed": {
        "sex": "nominal",
        "age": "numeric",
        "marital_status": "nominal",
        "citizenship": "nominal",
        "education": "nominal",
        "working_status": "nominal",
        "occupation": "nominal",
        "income": "numeric",
        "hours": "numeric",
    },
    "nominal": dict.fromkeys(
        (
            "sex",
            "age_group",
            "marital_status",
            "citizenship",
            "education",
            "working_status",
            "occupation",
            "household_type",
        ),
        "nominal",
    ),
    "numeric": dict.fromkeys(
        (
            "age",
            "income",
            "hours",
            "tax",
            "savings",
            "debt",
            "rent",
            "floor_space",
            "commute",
            "years_in_job",
        ),
        "numeric",
    ),
}


def demo(
    out: str | Path,
    *,
    records: int,
    kind: Kind = "mixed",
    only_data: bool = False,
    overrides: Sequence[str] = (),
    master: str | None = None,
    progress: Progress,
) -> CommandResult:
    """Generate the town below `out`, and protect its data unless `only_data` is set.

    Parameters
    ----------
    out : path
        Folder for ``data/``, ``release.toml`` and, from `protect`, ``lake/`` and ``evidence/``.
    records : int
        Number of persons.
    kind : str
        Kind of the quasi-identifiers: a few of both kinds, eight nominal, or ten numeric.
    overrides : sequence of str
        `section.key=value` for the run, not written to the specification.
    """
    out = Path(out)
    if not only_data:
        require_extras(*OF_A_RELEASE)
    with progress.stage("town"):
        write_town(out / "data", records, kind)
    path = out / "release.toml"
    path.write_text(specification_text(records, kind), encoding="utf-8")
    specification = read_specification(path, overrides)
    if only_data:
        text = f"A town of {records:,} persons is in {out / 'data'}, and its specification is {path}."
        return CommandResult(
            text, {"data": str(out / "data"), "specification": str(path), "records": records}
        )
    from microguard.pipelines.protect import protect

    return protect(specification, master=master, progress=progress)


def write_town(folder: Path, records: int, kind: Kind) -> None:
    """Write the town as Parquet files; remove the surplus files of an earlier, larger town."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecificationError(
            f"The demo cannot write to {folder}: {error.strerror}. Choose another folder by --out."
        ) from None
    names = [*NEVER_PUBLISHED, *PUBLISHED_AS_IT_IS[kind], *QUASI_IDENTIFIERS[kind]]
    written = set()
    for number, persons in enumerate(generate_persons(records, SEED)):
        path = folder / PART.format(number=number)
        pq.write_table(persons.select(names), path, compression="zstd")
        written.add(path)
    for stale in set(folder.glob("persons-*.parquet")) - written:
        stale.unlink()


def specification_text(records: int, kind: Kind) -> str:
    """Return the specification of the town's release, in the form in which a user would write it."""
    roles = NEVER_PUBLISHED | PUBLISHED_AS_IT_IS[kind]
    lines = [f'{name} = {{ role = "{role}" }}' for name, role in roles.items()]
    lines += [
        f'{name} = {{ role = "quasi_identifier", kind = "{of}" }}'
        for name, of in QUASI_IDENTIFIERS[kind].items()
    ]
    return f"""# A synthetic town of {records:,} persons; nobody in it exists.
[release]
name = "town-{kind}-{records}"
k = {K}
seed = {SEED}

[input]
path = "data"

[variables]
{chr(10).join(lines)}

[method]
min_diversity = {MIN_DIVERSITY[kind]}

[publish]
path = "lake"
evidence = "evidence"
"""
