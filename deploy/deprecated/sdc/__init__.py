"""Deprecated name of ``microguard.sdc``, in wheels."""

import microguard

microguard.deprecate_sdc()
