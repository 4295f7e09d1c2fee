"""Small count rounding: only small counts are rounded, and every total is the sum of its parts."""
