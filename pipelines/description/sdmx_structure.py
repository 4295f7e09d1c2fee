"""SDMX structure message of a release: concepts, code lists, data structures and dataflows.

The message is SDMX-ML 2.1, which readers of every later version accept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

_BASE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_PREFIXES = {"mes": f"{_BASE}/message", "str": f"{_BASE}/structure", "com": f"{_BASE}/common"}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
#: Constant time in the header, which requires one: public files state no time, and equal releases have equal
#: files.
_PREPARED = "2000-01-01T00:00:00"
_CONCEPTS = "CONCEPTS"
#: Observation and its attributes: name of each identifier, and the codes of the attributes from the
#: cross-domain code lists of SDMX.
_OBSERVATION = {"OBS_VALUE": "Observation value"}
_ATTRIBUTES = {
    "OBS_STATUS": ("Observation status", {"A": "Normal value", "Q": "Missing value; suppressed"}),
    "CONF_STATUS": ("Confidentiality status", {"F": "Free", "C": "Confidential statistical information"}),
}


@dataclass(frozen=True)
class Variable:
    """A dimension: its identifier, the name of its column, and the name of each code of its values."""

    identifier: str
    name: str
    codes: Mapping[str, str]


@dataclass(frozen=True)
class Flow:
    """A table: identifier and name of its dataflow, and the identifiers of its dimensions in order."""

    identifier: str
    name: str
    dimensions: Sequence[str]


def structure_message(
    release_id: str, name: str, flows: Sequence[Flow], variables: Sequence[Variable]
) -> bytes:
    """Return the structure message as XML."""
    message = Element(_tag("mes:Structure"))
    header = SubElement(message, _tag("mes:Header"))
    for tag, text in (("ID", release_id), ("Test", "false"), ("Prepared", _PREPARED)):
        SubElement(header, _tag(f"mes:{tag}")).text = text
    SubElement(header, _tag("mes:Sender"), id="MICROGUARD")
    structures = SubElement(message, _tag("mes:Structures"))
    _add_flows(structures, flows)
    _add_codelists(structures, variables)
    _add_concepts(structures, name, variables)
    _add_data_structures(structures, flows)
    ElementTree.indent(message)
    for prefix, address in _PREFIXES.items():
        ElementTree.register_namespace(prefix, address)
    return ElementTree.tostring(message, encoding="utf-8", xml_declaration=True)


def _add_flows(structures: Element, flows: Sequence[Flow]) -> None:
    flows_element = SubElement(structures, _tag("str:Dataflows"))
    for flow in flows:
        element = _maintainable(flows_element, "Dataflow", flow.identifier, flow.name)
        _refer(SubElement(element, _tag("str:Structure")), flow.identifier, "DataStructure", "datastructure")


def _add_codelists(structures: Element, variables: Sequence[Variable]) -> None:
    lists = [
        *((each.identifier, each.name, each.codes) for each in variables),
        *((identifier, name, codes) for identifier, (name, codes) in _ATTRIBUTES.items()),
    ]
    parent = SubElement(structures, _tag("str:Codelists"))
    for identifier, name, codes in lists:
        element = _maintainable(parent, "Codelist", f"CL_{identifier}", name)
        for code in sorted(codes):
            _named(SubElement(element, _tag("str:Code"), id=code), codes[code])


def _add_concepts(structures: Element, name: str, variables: Sequence[Variable]) -> None:
    scheme = _maintainable(SubElement(structures, _tag("str:Concepts")), "ConceptScheme", _CONCEPTS, name)
    names = {each.identifier: each.name for each in variables} | _OBSERVATION
    names |= {identifier: name for identifier, (name, _) in _ATTRIBUTES.items()}
    for identifier, text in names.items():
        _named(SubElement(scheme, _tag("str:Concept"), id=identifier), text)


def _add_data_structures(structures: Element, flows: Sequence[Flow]) -> None:
    parent = SubElement(structures, _tag("str:DataStructures"))
    for flow in flows:
        element = _maintainable(parent, "DataStructure", flow.identifier, flow.name)
        components = SubElement(element, _tag("str:DataStructureComponents"))
        dimensions = SubElement(components, _tag("str:DimensionList"), id="DimensionDescriptor")
        for position, identifier in enumerate(flow.dimensions, start=1):
            _component(dimensions, "Dimension", identifier, f"CL_{identifier}", position=str(position))
        attributes = SubElement(components, _tag("str:AttributeList"), id="AttributeDescriptor")
        for identifier in _ATTRIBUTES:
            attribute = _component(
                attributes, "Attribute", identifier, f"CL_{identifier}", assignmentStatus="Mandatory"
            )
            relation = SubElement(attribute, _tag("str:AttributeRelationship"))
            measure = SubElement(relation, _tag("str:PrimaryMeasure"))
            SubElement(measure, "Ref", id="OBS_VALUE")
        measures = SubElement(components, _tag("str:MeasureList"), id="MeasureDescriptor")
        _component(measures, "PrimaryMeasure", "OBS_VALUE")


def _component(
    parent: Element, tag: str, identifier: str, codelist: str | None = None, **attributes: str
) -> Element:
    """Add a component of a data structure, either with a code list or as a number."""
    element = SubElement(parent, _tag(f"str:{tag}"), {"id": identifier, **attributes})
    SubElement(
        SubElement(element, _tag("str:ConceptIdentity")),
        "Ref",
        {
            "id": identifier,
            "maintainableParentID": _CONCEPTS,
            "maintainableParentVersion": "1.0",
            "agencyID": "MICROGUARD",
            "class": "Concept",
            "package": "conceptscheme",
        },
    )
    representation = SubElement(element, _tag("str:LocalRepresentation"))
    if codelist is None:
        SubElement(representation, _tag("str:TextFormat"), textType="Double")
    else:
        _refer(SubElement(representation, _tag("str:Enumeration")), codelist, "Codelist", "codelist")
    return element


def _maintainable(parent: Element, tag: str, identifier: str, name: str) -> Element:
    attributes = {"id": identifier, "agencyID": "MICROGUARD", "version": "1.0", "isFinal": "true"}
    return _named(SubElement(parent, _tag(f"str:{tag}"), attributes), name)


def _named(element: Element, name: str) -> Element:
    SubElement(element, _tag("com:Name"), {_LANGUAGE: "en"}).text = name
    return element


def _refer(parent: Element, identifier: str, kind: str, package: str) -> None:
    attributes = {"id": identifier, "version": "1.0", "agencyID": "MICROGUARD"}
    SubElement(parent, "Ref", {**attributes, "class": kind, "package": package})


def _tag(name: str) -> str:
    prefix, _, local = name.partition(":")
    return f"{{{_PREFIXES[prefix]}}}{local}"
