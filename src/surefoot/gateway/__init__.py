"""The law of this room: one noun, ``Gateway``, and its doors; it assembles and decides nothing."""

from __future__ import annotations

from ._gateway import Gateway

__all__ = ["Gateway"]
