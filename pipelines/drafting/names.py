"""Interpret names of columns by keywords in English, German, French and other languages."""

from __future__ import annotations

import re

_WORDS = {
    "date": "date datetime timestamp time dob birth birthday birthdate datum geburtsdatum at",
    "period": "year month quarter week wave round period visit jahr monat quartal welle annee mois trimestre "
    "time date datum",
    "key": "id ids uid uuid guid nr key pid ssn nin siren siret phone tel mobile iban serial seqn seq recno "
    "rowno lfdnr lfd",
    "name": "name names surname firstname lastname forename email mail address street url ip",
    "household": "household hh hhid menage haushalt dwelling family foyer hogar",
    "weight": "weight weights wgt wt pweight perwt hhwt fnlwgt afnlwgt poids gewicht",
    "region": "region nuts nuts1 nuts2 nuts3 state county province district canton department land",
    "sensitive": "diagnosis disease illness hiv icd religion ethnicity ethnic crime disability party",
    "code": "code nace naics isco isic sic type class category zip postcode postal plz activity",
    "amount": "income salary wage wages pay earnings turnover sales revenue price amount value cost costs "
    "rent tax taxes profit assets debt capital budget expenditure spending consumption production output "
    "hours area surface age size count umsatz einkommen lohn gehalt miete betrag preis wert kosten steuer "
    "stunden flaeche alter anzahl montant salaire revenu loyer ventes chiffre surface heures",
    "body": "height stature groesse taille bmi",
}
_VOCABULARY = {what: frozenset(words.split()) for what, words in _WORDS.items()}

_HOUSEHOLD = "household|haushalts?|menage|foyer|hogar|family|dwelling|hh|hld"
_ENTITY = (
    "person|persons|pers|individual|indiv|unit|company|firm|enterprise|ent|business|establishment|estab|"
    "plant|utility|customer|cust|client|kunden?|firmen?|firma|unternehmens?|betriebs?|case|respondent|resp|"
    "record|rec|row|obs|observation|account|acct|member|employee|emp|worker|subject|subj|patient|pat|"
    "student|pupil|school|user|site|meter|farm|vehicle|property|interviewer|psu|serial|seq|lfd|"
    "registration|reg|tax|vat|social|passport|contract|policy|invoice|p"
)
_ENDING = "identifier|ident|idnr|idno|id|nummer|numero|number|num|nr|no|key"


def _glued(entities: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{entities})(?:{_ENDING})|(?:id|nr|num)(?:{entities})")


_GLUED = {"household": _glued(_HOUSEHOLD), "key": _glued(f"{_ENTITY}|{_HOUSEHOLD}")}
"""Keys whose name is written as one word: "personid", "hhnr", "idfirm"."""


def name_indicates(name: str, what: str) -> bool:
    """Return whether a name contains a keyword of a category, as a word or as a key in one word.

    Parameters
    ----------
    name : str
        "PersonId", "person_id", "person-id" and "PERSONID" are equivalent. Digits at the end of a word are
        ignored ("nace2").
    what : str
        Category: "date", "period", "key", "name", "household", "weight", "region", "sensitive", "code",
        "amount" or "body" (a measure of the body).
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[\W_]+", parted.lower()) if word]
    bare = [re.sub(r"[0-9]+$", "", word) for word in words]
    if not _VOCABULARY[what].isdisjoint([*words, *bare]):
        return True
    return what in _GLUED and _GLUED[what].fullmatch("".join(bare)) is not None
