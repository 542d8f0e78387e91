#!/usr/bin/env python3
"""Evaluates token ids with mlx-lm, as measure.py tells it to:

  forward.py CHECKPOINT THREADS CONTEXT

on the processor, for which MLX takes no number of threads, or with 0 on the GPU. It answers each line of standard input
with a line of JSON; ../README.md has the lines.
"""
import json
import pathlib
import sys
import time

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

# Prompt tokens evaluated at once: mlx-lm's own default.
CHUNK = 2048


def say(**answer):
    print(json.dumps(answer), flush=True)


class Forward:
    def __init__(self, path):
        start = time.perf_counter()
        self.model, config = load_model(pathlib.Path(path), lazy=False)
        self.vocabulary = config["text_config"]["vocab_size"]
        self.cache = None
        self.at = 0
        self.last = None
        say(loaded=time.perf_counter() - start, system=str(mx.default_device()))

    def token(self, position):
        """What every engine is given at a position."""
        x = (position * 2654435761 + 12345) & 0xFFFFFFFF
        x ^= x >> 15
        return ((x * 2246822519 & 0xFFFFFFFF) >> 8) % self.vocabulary

    def evaluate(self, tokens):
        """Returns the token that follows."""
        logits = self.model(mx.array([tokens]), cache=self.cache)
        self.last = logits[0, -1]
        self.at += len(tokens)
        return int(mx.argmax(self.last))

    def prefill(self, n):
        """Evaluates the first n tokens from nothing. As mlx-lm does it, all chunks but the last end at the cache."""
        self.cache = make_prompt_cache(self.model)
        self.at = 0
        tokens = [self.token(i) for i in range(n)]
        start = time.perf_counter()
        while len(tokens) > 1:
            m = min(CHUNK, len(tokens) - 1)
            self.model(mx.array([tokens[:m]]), cache=self.cache)
            mx.eval([c.state for c in self.cache])
            self.at, tokens = self.at + m, tokens[m:]
        first = self.evaluate(tokens)
        say(seconds=time.perf_counter() - start, tokens=[first])

    def decode(self, n, own):
        """Evaluates n more tokens one by one: the given ones, or those that the model chooses."""
        chosen, following = [], int(mx.argmax(self.last))
        start = time.perf_counter()
        for _ in range(n):
            following = self.evaluate([following if own else self.token(self.at)])
            chosen.append(following)
        say(seconds=time.perf_counter() - start, tokens=chosen)

    def logits(self):
        say(logits=self.last.astype(mx.float32).tolist())


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: forward.py CHECKPOINT THREADS CONTEXT")
    mx.set_default_device(mx.gpu if sys.argv[2] == "0" else mx.cpu)
    f = Forward(sys.argv[1])
    for line in sys.stdin:
        what, n = line.split()
        if what == "prefill":
            f.prefill(int(n))
        elif what in ("decode", "greedy"):
            f.decode(int(n), what == "greedy")
        elif what == "logits":
            f.logits()
        else:
            sys.exit(f"forward.py: unknown line: {line!r}")


if __name__ == "__main__":
    main()
