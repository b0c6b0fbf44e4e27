#!/usr/bin/env python3
"""Writes src/conversation/text/confusables.ts: Unicode's characters that look alike (UTS 39), as ICU has them.

Run it with Debian's python3-icu: /usr/bin/python3 scripts/write-confusables.py
"""
import json
import pathlib
import re
import unicodedata

import icu

CHECKER = icu.SpoofChecker()
TARGET = pathlib.Path(__file__).parent.parent / "src/conversation/text/confusables.ts"


def nfkd(text):
    return unicodedata.normalize("NFKD", text)


prototypes = {}
for code in range(0x110000):
    if 0xD800 <= code <= 0xDFFF:
        continue
    character = chr(code)
    skeleton = CHECKER.getSkeleton(0, character)
    if skeleton != unicodedata.normalize("NFD", character):
        prototypes[character] = skeleton


def shape_of(text):
    return "".join(prototypes.get(one, one) for one in nfkd(text))


# One row for each prototype: the prototype, a tab, the characters that look like it. What normalization maps alone is left out.
shapes = {}
for character, prototype in prototypes.items():
    if nfkd(character) != character or re.search(r"\s", prototype):
        continue
    shape = shape_of(prototype)
    if shape not in (character, ""):
        shapes[shape] = shapes.get(shape, "") + character


def escaped(text):
    return "".join(
        f"\\u{{{ord(one):x}}}" if unicodedata.category(one)[0] in "MCZ" else one
        for one in json.dumps(text, ensure_ascii=False).replace("\\t", "\t")
    ).replace("\\u{9}", "\\t")


rows = ",".join(escaped(f"{shape}\t{characters}") for shape, characters in shapes.items())
TARGET.write_text(
    f"""/** Written by scripts/write-confusables.py from ICU {icu.ICU_VERSION}, Unicode {icu.UNICODE_VERSION} (UTS 39): a shape, a tab, the characters of that shape. © Unicode, Inc.: https://www.unicode.org/terms_of_use.html */
// biome-ignore format: data
export const CONFUSABLES: readonly string[] = [{rows}];
"""
)
print(f"{len(shapes)} shapes of Unicode {icu.UNICODE_VERSION}")
