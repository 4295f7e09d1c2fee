"""Every cell to a multiple of a base next to it, additive, by a keyed walk that keeps expectations."""
