"""Characters that published standards and locales use in numbers, next to the digits."""

from __future__ import annotations

BLANKS = " \u00a0\u2007\u2009\u202f"
"""Blanks between thousands: space, and the no-break, figure, thin (SI brochure) and narrow no-break space."""
MINUS = "\u2212"
"""The minus sign of the locales of Sweden, Norway and Slovenia."""
