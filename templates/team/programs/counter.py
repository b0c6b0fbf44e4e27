"""The agent `counter` in Python, without packages. Start it instead of counter.mjs: python3 programs/counter.py"""
import os
import re
import sys
from pathlib import Path

# A small NATS client and the protocol of a turn; copy the folder to change them.
project = Path(__file__).resolve().parent.parent
client = project / "node_modules/parleyd/examples/remote-agent-python"
if not client.is_dir():
    sys.exit(f"counter: {client} is missing: run `npm install` first")
sys.path.append(str(client))
from agent import Nats, address_in, serve


def count(text):
    words = sum(1 for word in text.split() if re.search(r"\w", word) and not word.startswith("@"))
    sentences = sum(1 for part in re.split(r"[.!?]+(?:\s|$)", text) if re.search(r"\w", part))
    return f"{words} words in {sentences} {'sentence' if sentences == 1 else 'sentences'}."


def answer(offer, write, over):
    return count(offer["messages"][-1]["content"])


data = os.environ.get("PARLEY_DATA") or "data"  # the data directory of the daemon
serve(Nats(address_in(data)), "counter", answer)
