"""Files of other programs, each type in each role: published with the same bits, or refused by name."""
