"""The agent `counter` in Python, with the client of Parley alone. Start it instead of counter.mjs: python3 programs/counter.py"""
import os
import re
import sys
from pathlib import Path

# Where `npm install` put the client.
project = Path(__file__).resolve().parent.parent
client = project / "node_modules/parleyd/clients/python"
if not client.is_dir():
    sys.exit(f"counter: {client} is missing: run `npm install` first")
sys.path.append(str(client))
import parley


def count(text):
    words = sum(1 for word in text.split() if re.search(r"\w", word) and not word.startswith("@"))
    sentences = sum(1 for part in re.split(r"[.!?]+(?:\s|$)", text) if re.search(r"\w", part))
    return f"{words} words in {sentences} {'sentence' if sentences == 1 else 'sentences'}."


def answer(turn):
    return count(turn.text)


data = os.environ.get("PARLEY_DATA") or "data"  # the data directory of the daemon
parley.serve("counter", answer, data)
