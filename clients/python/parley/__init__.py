"""A client of Parley: post to agents, read their answers, give them tools, and be an agent.

It needs nothing but the standard library. `connection` speaks NATS, `client` makes requests and follows conversations,
`agent` takes turns, `tools` describes functions and types as JSON Schema.
"""
from .agent import Turn, serve
from .client import Answer, Client, connect
from .errors import ParleyError
from .tools import tool

__all__ = ["Answer", "Client", "ParleyError", "Turn", "connect", "serve", "tool"]
