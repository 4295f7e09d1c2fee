"""Draft of `[table]` for tau-ARGUS files, from the metadata of their fields."""

from __future__ import annotations

from pathlib import Path

from microguard.pipelines.drafting.counting import K
from microguard.pipelines.drafting.finished_table import plain_name
from microguard.pipelines.drafting.table import quoted


def draft_with_metadata(named: str) -> str | None:
    """Return the draft for tau-ARGUS files that have a metadata file of the same name.

    None unless the input is a `.tab` or `.asc` file next to an `.rda` file.
    """
    path = Path(named).expanduser().absolute()
    metadata = path.with_suffix(".rda")
    if path.suffix.lower() not in (".tab", ".asc") or not metadata.is_file():
        return None
    from microguard.schemas.specification.tau_argus import fields_of, is_microdata

    head, fields = fields_of(metadata, "utf-8")
    name = plain_name(path)
    lines = [
        "# Draft by microguard for microguard adjust. Missing keys come from the tau-ARGUS metadata.",
        "", "[release]", f"name = {quoted(name)}", f"k = {K}", "",
        "[input]", f"path = {quoted(str(path))}", f"metadata = {quoted(str(metadata))}", "", "[table]",
    ]  # fmt: skip
    values = [each.name for each in fields if each.key == "value"]
    if is_microdata(head, fields, {}):
        dimensions = [each.name for each in fields if each.key == "dimension"][:2]
        lines.append(f"tables = [[{', '.join(map(quoted, dimensions))}]]    # choose the dimensions")
        lines.append("p_percent = 10" if values else 'kind = "frequency"')
    if len(values) > 1:
        lines.append(f"value = {quoted(values[0])}    # one of {', '.join(map(quoted, values))}")
    lines += ["", "[publish]", f"path = {quoted('lake/' + name)}", f"evidence = {quoted('evidence/' + name)}"]
    return "\n".join(lines) + "\n"
