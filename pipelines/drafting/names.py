"""Concepts in names of columns, by keywords in English, German, French, the Nordic and other languages."""

from __future__ import annotations

import re
import unicodedata

_WORDS = {
    "date": "date datetime timestamp dob birthday birthdate datum geburtsdatum dato fecha naissance",
    "period": "year yr month quarter week wave round period visit jahr monat quartal welle annee mois "
    "trimestre aar ano time date datum refyear",
    "key": "id ids uid uuid guid nr key pid ssn nin siren siret phone tel mobile iban serial seqn seq recno "
    "rowno lfdnr lfd idp caseid case individual rowid index personnummer fnr cpr",
    "line": "pernum persno persnr lineno linenumber member_no hhseq",
    "entity": "psu cluster site school plant enterprise firm employer establishment kommune_id",
    "name": "name names surname firstname lastname forename email mail address street url ip navn",
    "household": "household hh hhid hid hidp menage haushalt dwelling family foyer hogar idhog husholdning "
    "hushall familia famille famiglia huishouden",
    "weight": "weight weights wgt wgts wt wts pweight perwt hhwt fnlwgt afnlwgt poids gewicht ponderation "
    "ponderacion expansion factor expfac fexp hochrechnung hochrechnungsfaktor hrf phrf hhrf finalwt wtfinl "
    "calweight vekt vikt peso",
    "place": "region regio geo nuts nuts1 nuts2 nuts3 state county province provinz district canton kanton "
    "department departement departamento dipartimento dep land municipality commune comune kommune kommun "
    "kom gemeinde gemeente kreis landkreis bezirk bundesland municipio concelho parish lau fips provincia "
    "ccaa comunidad regione distrito uf "
    "fylke lan wojewodztwo powiat gmina okres obec "
    "country cntry pays zip zipcode postcode postal plz postnummer city town village area_code ags puma",
    "sensitive": "diagnosis diagnose disease illness hiv icd icd10 health sante gesundheit religion "
    "ethnicity ethnic crime disability handicap party disea physlm chronic depression smoker pregnant "
    "abortion religious affairs victim conviction sexual addiction mental krankheit erkrankung behinderung "
    "konfession maladie sykdom sygdom sjukdom enfermedad",
    "code": "code nace naics isco isic sic type class category zip postcode postal plz activity coicop cpa "
    "nco noc anzsco anzsic cnae ateco naf ape kldb okved scian sinco ciiu ciuo cno "
    "cpc hs isced soc esco fos iso branch stratum strata sector segment grade rank status species cat",
    "amount": "income salary wage wages pay earnings turnover sales revenue price amount value cost costs "
    "rent tax taxes profit assets debt capital budget expenditure spending consumption production output "
    "hours area surface age size count umsatz einkommen lohn gehalt miete betrag preis wert kosten steuer "
    "stunden flaeche alter anzahl montant salaire revenu loyer ventes chiffre surface heures stock wealth "
    "savings yield livestock cattle cows pigs sheep poultry ha hectares employees benefit benefits pension "
    "allowance score rate share percent pct index_value ingresos "
    "ingreso renta salario sueldo reddito inkomen",
    "income": "income salary wage wages pay earnings einkommen lohn gehalt revenu salaire wealth savings "
    "pension benefit benefits netincome inc inntekt inkomst inkomen ingresos ingreso renta salario sueldo "
    "reddito",
    "age": "age alter alder edad xage birthyear yob geburtsjahr",
    "visible": "sex gender geschlecht sexe sexo sesso geslacht genero gndr kjonn kon age alter alder "
    "edad xage marital marst civil "
    "familienstand married nationality nationalite nationalitaet nacionalidad citizenship ctzcntr "
    "staatsangehoerigkeit born brncntr birthplace country occupation "
    "beruf profession isco education bildung isced educ children kinder household hhsize hsize language race "
    "black white ethnicity nace activity size employees tenure female male yob birthyear urban rural legal "
    "marstat hatlev relation relationship",
    "coordinate": "latitude longitude lat lon lng easting northing coord coordinate gps breitengrad "
    "laengengrad hochwert rechtswert",
    "body": "height stature groesse taille bmi",
}
_VOCABULARY = {what: frozenset(words.split()) for what, words in _WORDS.items()}

_HOUSEHOLD = "household|haushalts?|menage|foyer|hogar|family|dwelling|hh|hld|h"
_ENTITY = (
    "person|persons|pers|individual|indiv|unit|company|firm|enterprise|ent|business|establishment|estab|"
    "plant|utility|customer|cust|client|kunden?|firmen?|firma|unternehmens?|betriebs?|case|respondent|resp|"
    "record|rec|row|obs|observation|account|acct|member|employee|emp|worker|subject|subj|patient|pat|"
    "student|pupil|school|user|site|meter|farm|vehicle|property|interviewer|psu|serial|seq|lfd|holding|"
    "registration|reg|tax|vat|social|passport|contract|policy|invoice|p|z"
)
_ENDING = "identifier|ident|idnr|idno|id|nummer|numero|number|num|nr|no|key|pers?"


def _glued(entities: str) -> re.Pattern[str]:
    return re.compile(rf"(?:ori|orig|new|old|my)?(?:(?:{entities})(?:{_ENDING})|(?:id|nr|num)(?:{entities}))")


_GLUED = {
    "household": _glued(_HOUSEHOLD),
    "key": _glued(f"{_ENTITY}|{_HOUSEHOLD}"),
    "weight": re.compile(
        r"(?!.*(?:birth|body|kg))(?:"
        r".*(?:weights?|we?ght|wgt|gewicht|hochrechnung|grossing|elevacion|ponderacion).*|"
        r"[a-z]{0,6}wts?|wts?[a-z]{0,6}|mult(?:iplier)?)"
    ),
    "place": re.compile(
        r"(?:nuts|region|kommune|municip|gemeinde|commune|postal|county|district|country|plz|zip).{0,12}"
    ),
    "code": re.compile(
        r"(?:nace|isco|isic|isced|naics|occ(?:up)?|coicop)[a-z0-9]{0,6}|"
        r"[a-z]{0,3}(?:nace|isco|isic|isced|naics)|pcs(?:ese)?"
    ),
    "period": re.compile(r"(?:s|ref|int|svy|survey|fiscal|report|data)(?:year|yr|jahr|wave|anno?|annee)"),
    "age": re.compile(r"(?:rid|x|hh|resp|curr?)?age(?:yr|yrs|year|years|a|p|mn|mo)?"),
    "body": re.compile(r"[a-z]{0,4}(?:bmi|height|waist)|bmx[a-z]+"),
    "income": re.compile(r"(?:ln|log|l|net|gross|tot|total|hh|fam|f)?(?:income|earnings?|inc|wages?|salary)"),
    "amount": re.compile(r"(?:ln|log|net|gross|tot|total|hh)?(?:income|earnings?|wages?|salary|turnover)"),
}
"""Names that are written as one word: "personid", "hhnr", "idfirm", "orihid", "weightsEmployers"."""
_CODES = {
    "household": re.compile("[dh]b030|[rp]x030"),
    "key": re.compile("[rp]b030"),
    "weight": re.compile("db09[05]|rb0[56]0|pb0[46]0|rl070|h?v005"),
}
"""Names from codebooks whose meaning is clear even without the other names of their layout: EU-SILC and DHS.
"""


def concepts_of(name: str) -> frozenset[str]:
    """Return the concepts of a name: those with a keyword that equals a word of the name or is contained in
    one.

    Parameters
    ----------
    name : str
        "PersonId", "person_id", "person-id" and "PERSONID" are equivalent. Digits at the end of a word are
        ignored ("nace2"), and so are accents ("Pondération").

    Returns
    -------
    frozenset of str
        Of "date", "period", "key" (of a person or firm), "line" (number within a household), "entity" (a
        cluster of units), "name", "household", "weight", "place", "sensitive", "code", "amount", "income",
        "age", "visible" (what others see or know of a unit), "coordinate" (of a place) and "body" (a measure
        of the body).
    """
    spelled = {_without_accents(name), _without_accents(name.translate(_UMLAUTS))}
    return frozenset().union(*(_concepts_of(each) for each in sorted(spelled)))


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "Ae", "ł": "l", "Ł": "L"})


def _without_accents(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.translate(_LETTERS))
    return "".join(each for each in decomposed if not unicodedata.combining(each))


def _concepts_of(name: str) -> frozenset[str]:
    """Return the concepts of a name without accents."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    words = [word for word in re.split(r"[\W_]+", parted.lower()) if word]
    bare = [re.sub(r"[0-9]+$", "", word) for word in words]
    longer = [word for word in bare if len(word) > 2]  # the name "HA10" does not mean an area in hectares
    said = {
        what
        for what, known in _VOCABULARY.items()
        if not known.isdisjoint([*words, *(longer if what == "amount" else bare)])
    }
    joined = "".join(bare)
    said |= {what for what, pattern in _GLUED.items() if pattern.fullmatch(joined)}
    coded = {what for what, pattern in _CODES.items() if pattern.fullmatch(name.strip().lower())}
    if coded:
        return frozenset(coded)
    if said & {"amount", "income"}:
        said -= {"entity"}
    if "kg" in words:
        said -= {"weight"}  # body weight or product weight is not a sampling weight
    return frozenset(said)
