"""The agency's report of a release: one self-contained page, rebuilt from its evidence at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from pipelines.engine.files import write_atomically
from pipelines.engine.outcome import Outcome
from pipelines.evidence import plots
from pipelines.evidence.files import read_blocks, read_quality
from pipelines.evidence.table_plots import table_plots
from pipelines.publication.find_release import locate
from pipelines.publication.manifest import LIMITS
from pipelines.tables.manifest import LIMITS as TABLE_LIMITS

PAGE, STYLE = "report.html", "report.css"


def report(named: str) -> Outcome:
    """Rebuild the page of a release from its evidence.

    Parameters
    ----------
    named : str
        A release folder of the public or the evidence area, or a specification file.
    """
    located = locate(named)
    page = write_report(located.areas().record(located.release_id))
    return Outcome(f"The report is at {page}", {"release_id": located.release_id, "report": str(page)})


def write_report(folder: Path) -> Path:
    """Write the page of an evidence folder from its ``quality.json`` and (of records) ``blocks.parquet``."""
    quality = read_quality(folder)
    if "table" in quality:
        return _write(folder, "table_report.html", quality, table_plots(quality), limits=TABLE_LIMITS)
    blocks = read_blocks(folder)
    specification = quality["release"]["specification"]
    variables = specification.get("variables", {})
    return _write(
        folder,
        PAGE,
        quality,
        _plots(quality, blocks),
        blocks=_by_algorithm(blocks),
        limits=LIMITS,
        units=f"{specification.get('method', {}).get('unit', 'record')}s",
        region=any(variable.get("role") == "region" for variable in variables.values()),
    )


def _write(folder: Path, template: str, quality: dict[str, Any], drawn: dict[str, Any], **more: Any) -> Path:
    here = Path(__file__).parent
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.ChainableUndefined)
    page = environment.from_string((here / template).read_text(encoding="utf-8"))
    text = page.render(
        q=quality,
        plots={name: _marked(svg) for name, svg in drawn.items()},
        style=Markup((here / STYLE).read_text(encoding="utf-8")),
        n=_count,
        g=_number,
        percent=_percent,
        **more,
    )
    write_atomically(folder / PAGE, text)
    return folder / PAGE


def _plots(quality: dict[str, Any], blocks: pa.Table) -> dict[str, Any]:
    k = quality["release"]["k"]
    drawn: dict[str, Any] = {
        "risk": {
            name: plots.risk_plot(risk["before"], risk["after"], k) for name, risk in quality["risk"].items()
        },
        "loss": {
            name: plots.loss_plot(loss["by_variable"]) for name, loss in quality.get("loss", {}).items()
        },
    }
    if quality.get("moments"):
        drawn["spread"] = plots.spread_plot(quality["moments"])
    drawn["correlations"] = {
        name: plots.correlation_plot(found["before"], found["after"])
        for name, found in quality.get("correlations", {}).items()
        if len(found["variables"]) > 1
    }
    if quality.get("by_dimension"):
        drawn["errors"] = plots.error_plot(
            {dimension: found["errors"] for dimension, found in quality["by_dimension"].items()}
        )
    if len(blocks):
        columns = blocks.select(["records", "seconds", "gap"]).to_pydict()
        drawn["blocks"] = plots.block_plot(columns["records"], columns["seconds"], columns["gap"])
    if quality.get("stages"):
        drawn["stages"] = plots.stage_plot(quality["stages"])
    return drawn


def _by_algorithm(blocks: pa.Table) -> list[dict[str, Any]]:
    flags = pa.table(
        {
            "algorithm": blocks["algorithm"],
            "records": blocks["records"],
            "optimal": pc.fill_null(blocks["optimal"], False).cast(pa.int64()),
            "fallback": pc.is_valid(blocks["fallback"]).cast(pa.int64()),
        }
    )
    sums = [("records", "count"), ("records", "sum"), ("optimal", "sum"), ("fallback", "sum")]
    found = (
        flags.group_by("algorithm")
        .aggregate(sums)
        .rename_columns(["algorithm", "blocks", "records", "optimal", "fallback"])
    )
    return found.sort_by("algorithm").to_pylist()


def _marked(drawn: Any) -> Any:
    """Tell the template that SVG texts are ours and not to be escaped."""
    if isinstance(drawn, dict):
        return {name: _marked(part) for name, part in drawn.items()}
    return Markup(drawn)


def _count(value: Any) -> str:
    return "-" if value is None or isinstance(value, jinja2.Undefined) else f"{value:,.0f}".replace(",", " ")


def _number(value: Any) -> str:
    return "-" if value is None or isinstance(value, jinja2.Undefined) else f"{value:,.4g}"


def _percent(value: Any) -> str:
    return "-" if value is None or isinstance(value, jinja2.Undefined) else f"{100 * value:.3g} %"
