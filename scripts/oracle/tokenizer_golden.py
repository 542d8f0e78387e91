#!/usr/bin/env python3
"""Write core/tokenizer/testdata: what Hugging Face tokenizers makes of seeded texts and of seeded ids.

Needs tokenizers.

  tokenizer_golden.py REPOSITORY

encode.jsonl.gz, of the texts of tokenizer_corpus.py: {"text", "pieces": the text normalised and split, "tiny" and
"demo": its ids with the tokenizers of core/conform/testdata/tiny and bundle/demo, added tokens being text, "added": the
ids of demo with added tokens}. decode.jsonl.gz, of random ids of demo: {"ids", "text", "skipped": without the special}.
"""
import gzip
import json
import os
import sys

import tokenizer_corpus
import tokenizer_reference


def encodings(tiny, demo):
    for text in tokenizer_corpus.texts(seed=1, rounds=200, run=600):
        yield {"text": text, "pieces": demo.pieces(text), "tiny": tiny.encode(text), "demo": demo.encode(text),
               "added": demo.encode_with_added(text)}


def decodings(demo, count):
    """Ids that are mostly single bytes of no ASCII, so that whole, broken and cut-off characters all come up."""
    size = demo.added.get_vocab_size()
    high = [i for i in range(256) if not demo.added.id_to_token(i).isascii()]
    s = tokenizer_corpus.Source(2)
    for _ in range(count):
        kinds = [high, high, high, range(256), range(size), range(size - 33, size + 100)]
        ids = [s.pick(s.pick(kinds)) for _ in range(1 + s.below(20))]
        for c in s.anything(4):
            at = s.below(len(ids) + 1)
            ids[at:at] = demo.encode(c)[:1 + s.below(4)]
        yield {"ids": ids, "text": demo.decode(ids, False), "skipped": demo.decode(ids, True)}


def write(path, lines):
    """Write JSON lines, compressed; the same lines give the same bytes."""
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        for line in lines:
            z.write((json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode())


def main():
    root = sys.argv[1]
    tiny, demo = (tokenizer_reference.Reference(os.path.join(root, folder, "tokenizer.json"))
                  for folder in ("core/conform/testdata/tiny", "bundle/demo"))
    testdata = os.path.join(root, "core", "tokenizer", "testdata")
    write(os.path.join(testdata, "encode.jsonl.gz"), encodings(tiny, demo))
    write(os.path.join(testdata, "decode.jsonl.gz"), decodings(demo, 300))


if __name__ == "__main__":
    main()
