"""Meaning of variable names according to published codebooks.

A name such as ``rb050`` has no meaning without its codebook. A codebook is recognised if a file has at least
`FEWEST` of its names. Names are interpreted only by a recognised codebook. Names are patterns in lower case.

Sources: Eurostat, EU-SILC target variables (DocSILC065) and the files of laeken; Eurostat, Structure of
Earnings Survey (Regulation 1916/2000); Eurostat, EU Labour Force Survey; IPUMS USA and International; ANES
Time Series 2016 and 2020; DHS Recode 7; FAO, World Programme for the Census of Agriculture 2020.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

FEWEST = 3
"""Minimum number of names of a codebook that a file must contain."""

_LAYOUTS: dict[str, dict[str, str]] = {
    "EU-SILC": {
        "key": "rb030|pb030|rb2[234]0|pb1[678]0|hb0[78]0",
        "household": "[dh]b030|rb040|[rp]x030|ph?030_hh",
        "weight": "db0[89]0|db095|rb0[56][0-4]?|pb0[4-8]0|rl070|hb050w",
        "place": "db0[246]0|db062|[rhp]b020",
        "code": "db0(50|7[05])|db1[0-3]0|rb2[0145]0|rb1[0-9]0|rb070|p[be]\\d+[a-z]?|pl(0[0-4]|1[0-9]|"
        "2)\\d.*|"
        "hs\\d+|hh0(10|2\\d|[345]0|8\\d|91)|hx0[678]0|rx0[4567]0|pe0\\d0|hd\\d+|.*_f",
        "period": "[dhrp]b010|hb0[56]0|pb1[01]0",
        "visible": "rb0(80|90)|pb1([345]0|9\\d)|pb2[0-2]0[ab]?|pe0[24]0|pl0(31|3[05]|4[05]|51|50)|rx0[12]0|"
        "hx0[4567]0|hsize|hh0[12][01]|pl11[01]a?",
        "sensitive": "ph0[1-7]0",
        "amount": "[hp]y\\d+[gn]?|hx[01][59]0|eq(ss|income)|netincome|hh0[67][01]|pl(06|07|08|09)\\d|"
        "rl0[1-6]0|"
        "rx0[12]0|[rp]b080|pb140",
        "income": "[hp]y\\d+[gn]?|hx090|eqincome|netincome",
        "age": "rx0[12]0",
    },
    "SES": {
        "key": "keyind|key_?[be]|idemp|employee_id",
        "entity": "keyloc|key_?a|idunit|local_unit",
        "weight": "weights\\w*|[ab]5[1-3]\\d?",
        "place": "country|a1_?1\\w*|location",
        "code": "a1_?[2-6]\\w*|b2_?[1-9]\\w*|nace\\d?|economicfinanc|payagreement|fullpart|contract|size",
        "visible": "b2[1-5]\\w*|a1[2-3]\\w*|sex|age|education|occupation",
        "amount": "b3\\d?_?\\d*|b4_?\\d+\\w*|lengthservice|weeks|hourspaid|holiday|notpaid|"
        "sharenormalhours|"
        "earnings\\w*|paymentsshiftwork|overtimehours|b26|b27",
        "income": "b4[1-3]\\w*|earnings\\w*",
        "period": "year",
    },
    "EU-LFS": {
        "household": "hhnum|qhhnum|hhserial",
        "line": "hhseqnum",
        "key": "ident|hhpriv_id",
        "weight": "coeff\\w*|coef[qyh]\\w*",
        "place": "country|region(_?2d)?|countryw|regionw|countr1y|region1y",
        "code": "degurba|urb|isco\\w*|nace\\w*|na11\\w*|is88\\w*|isc?o?1d\\w*|ilostat|mainstat|"
        "wstator|ftpt|temp\\w*|"
        "hhlink|hhtype\\w*|hatlev\\w*|hatfield|seekwork|wantwork|stapro\\w*|exist2j|supvisor|sizefirm",
        "visible": "sex|age\\w*|marstat|national\\w*|countryb|hatlev\\w*|isco\\w*|nace\\w*|ilostat|stapro",
        "period": "year|refyear|quarter|refweek|refmonth|intweek|wave",
        "amount": "hwusual|hwactual\\w*|hwusu2j|incmon",
        "income": "incmon\\w*|incdecil",
    },
    "IPUMS": {
        "household": "serial|cbserial",
        "line": "pernum|cbpernum|(mom|pop|sp)loc\\d?",
        "weight": "perwt|hhwt|slwt|wtfinl|asecwt\\w*|hwtfinl|earnwt",
        "place": "statefip|stateicp|county\\w*|puma|cpuma\\w*|met\\w*|city|geolev\\d|region|country|"
        "migplac\\d",
        "entity": "cluster|strata",
        "code": "gq|hhtype|ownershp\\w*|relate\\w*|race\\w*|hispan\\w*|bpl\\w*|citizen|educ\\w*|"
        "empstat\\w*|"
        "labforce|occ\\w*|ind\\w*|classwkr\\w*|school|sample|language\\w*|ancestr\\w*|tranwork|"
        "vetstat\\w*|mort\\w*",
        "visible": "age|sex|marst|race\\w*|hispan\\w*|bpl|educd?|occ\\w*|nchild|famsize|relate|citizen|ind",
        "period": "year|month",
        "amount": "inc\\w+|ftotinc|hhincome|valueh|rent\\w*|uhrswork|trantime|famsize|owncost|poverty",
        "income": "inc\\w+|ftotinc|hhincome",
    },
    "ANES": {
        "key": "v\\d\\d0001(_orig)?|caseid|vcf0006a?",
        "weight": "v\\d\\d01[01]\\d\\w*|vcf0009\\w|vcf001[01]\\w",
        "item": "vcf\\d+\\w?|v(16|20)[0-9]\\d{3}\\w*",
        "period": "vcf0004",
        "age": "v161267|v201507x|vcf0101",
    },
    "DHS": {
        "key": "caseid|mcaseid|(bid|midx)x",
        "household": "hhid",
        "line": "[mh]?v00[23]|hvidx(_\\d+)?|bidx(_\\d+)?|[mh]v034_\\d|v034",
        "entity": "[mh]?v(001|004|021)",
        "weight": "[mh]?v005\\w?|d005",
        "place": "[mh]?v(000|024|101)|shdist\\w*",
        "code": "[mh]?v(02[2-8]|1[0-3]\\d\\w?|14\\d|15\\d|190\\w?|[3-7]\\d\\d\\w?)|hv\\d{3}\\w?|"
        "s\\d+\\w*|b[0458]",
        "period": "[mh]?v(006|007|008\\w?|016)",
        "age": "m?v012|hv105(_\\d+)?",
        "visible": "m?v(012|013|025|106|133|13[01]|149|201|501|716|717|218)|hv(009|024|025|104|105|"
        "106|115|010)",
        "sensitive": "m?v(75\\d|76\\d|77\\d|78\\d)\\w*|hiv0\\d|d1\\d\\d\\w?|v4(5[3-7]|45)",
        "amount": "m?v(012|133|191\\w?|437|438|445|446|453|456|201|010|011)|hv(009|105|191|010)",
    },
}


def recognise(names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the meanings of a file's names according to the codebook that contains most of them.

    Parameters
    ----------
    names : iterable of str
        Names of all columns of a file.

    Returns
    -------
    mapping of name to frozenset of str
        Concepts of `names.concepts_of`. Empty if no layout is recognised.
    """
    listed = list(names)
    best: dict[str, frozenset[str]] = {}
    for layout in _LAYOUTS.values():
        meant = {name: _concepts(name, layout) for name in listed}
        meant = {name: concepts for name, concepts in meant.items() if concepts}
        if len(meant) >= FEWEST and len(meant) > len(best) and len(meant) >= len(listed) / 3:
            best = meant
    return best


def _concepts(name: str, layout: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        concept for concept, pattern in layout.items() if re.fullmatch(pattern, name.strip().lower())
    )
