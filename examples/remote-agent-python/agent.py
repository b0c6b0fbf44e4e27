#!/usr/bin/env python3
"""An agent in a process of its own: python3 agent.py critic [DATA_DIRECTORY or nats://user:password@host:port]"""
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no __pycache__ in the checkout
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients/python"))  # or: pip install ./clients/python
import parley


def critic(turn):
    words = turn.text.split()
    turn.write("Let me see. ")
    turn.write(f"{len(words)} words, {len(set(turn.text.lower().split()))} different ones.")


slug = sys.argv[1] if len(sys.argv) > 1 else "critic"
where = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PARLEY_DATA") or "data"
parley.serve(slug, critic, where)
