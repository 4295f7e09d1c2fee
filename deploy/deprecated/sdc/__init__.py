"""Deprecated name of ``microguard.sdc``, in wheels until the next minor version."""

import microguard

microguard.deprecate_sdc()
