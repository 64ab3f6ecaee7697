"""The law of this room: only what a framework needs beyond a door, through its public hooks alone.

Nothing of a framework is imported before it is used.
"""

from __future__ import annotations

from ._agno import agno_tools
from ._hooks import tell_langchain, tell_openai_agents, tell_pydantic_ai

__all__ = ["agno_tools", "tell_langchain", "tell_openai_agents", "tell_pydantic_ai"]
