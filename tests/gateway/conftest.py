"""The law of this file: no test here speaks TLS, so no client here reads certificates."""

from support.no_tls import no_certificates

__all__ = ["no_certificates"]
