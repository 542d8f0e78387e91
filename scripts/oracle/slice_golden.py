#!/usr/bin/env python3
"""Dump a few golden values of a checkpoint at real dimensions by running mlx-lm on the CPU in float32.

Needs mlx (CPU build is enough), mlx-lm, numpy and safetensors. golden.py beside it keeps everything; at real dimensions
that would be too much for a repository, so this keeps some rows, and of every vector of logits each STRIDE-th.

  slice_golden.py CHECKPOINT --out DIR --name NAME [--steps 4] [--stride 8] --prompt short=12 [--prompt long=100]

A prompt is a name and a number of tokens, drawn from the vocabulary by a fixed seed. Writes NAME.safetensors and NAME.json
(prompts, rows kept, stride, greedy tokens and by how much each wins, the smallest margin of a router). For prompt P with kept rows R the arrays are:
  P.layer.<i> [R, hidden]       residual stream after layer i (prefill)
  P.router.<i>.idx/.p [R, K]    chosen experts, by falling probability, and their weights
  P.logits [V/stride]           of the last row, sampled
  P.state.<i>.ssm [2, 4, Dk]    recurrent state after prefill: first four rows of the first and the last head
  P.state.<i>.conv [3, 512]     conv state, the last 512 channels
  P.state.<i>.k / .v [Hkv, D]   of the last token
  P.decode.layers [S, hidden]   residual stream after the last layer
  P.decode.logits [S, V/stride]
"""
import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

import golden
from golden import mx


def prompt_ids(name, n, vocab):
    seed = sum(name.encode())
    return [int(x) for x in np.random.Generator(np.random.PCG64(seed)).integers(3, vocab, n)]


def kept_rows(n):
    """Both ends, and the edge of the first sub-chunk of 64."""
    return [r for r in (0, 63, 64) if r < n - 1] + [n - 1]


def states(model, cache):
    out = {}
    for k, v in golden.snapshot(model, cache).items():
        i, part = k.split(".")
        out[f"state.{i}.{part}"] = {"ssm": lambda a: a[[0, -1], :4], "conv": lambda a: a[:, -512:]}.get(
            part, lambda a: a[:, -1])(v)
    return out


def run(model, ids, steps, stride):
    layers = len(model.language_model.model.layers)
    cache, rows = model.make_cache(), kept_rows(len(ids))
    logits, rec = golden.forward(model, ids, cache)
    res = {"logits": logits[-1, ::stride]}
    margins = [float(rec["router"][i][2].min()) for i in range(layers)]
    for i in range(layers):
        res[f"layer.{i}"] = rec["layer"][i][rows]
        res[f"router.{i}.idx"], res[f"router.{i}.p"] = rec["router"][i][0][rows], rec["router"][i][1][rows]
    res.update(states(model, cache))
    row, tokens, tops, dl, dlog = logits[-1], [], [], [], []
    for s in range(steps + 1):
        top = np.sort(row)[-2:]
        tops.append(float(top[1] - top[0]))
        tokens.append(int(row.argmax()))
        if s == steps:
            break
        lg, rec = golden.forward(model, [tokens[-1]], cache)
        margins += [float(rec["router"][i][2].min()) for i in range(layers)]
        row = lg[-1]
        dl.append(rec["layer"][layers - 1][0])
        dlog.append(row[::stride])
    res["decode.layers"], res["decode.logits"] = np.stack(dl), np.stack(dlog)
    return res, {"prompt": ids, "rows": rows, "tokens": tokens, "margins": tops,
                 "min_router_logit_margin": min(margins)}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("checkpoint")
    ap.add_argument("--out", required=True)
    ap.add_argument("--name", required=True)
    ap.add_argument("--steps", type=int, default=4)
    ap.add_argument("--stride", type=int, default=8)
    ap.add_argument("--prompt", action="append", required=True, help="NAME=TOKENS")
    a = ap.parse_args()
    model, cfg = golden.load_model(Path(a.checkpoint))
    model.set_dtype(mx.float32)
    golden.instrument(model)
    arrays, meta = {}, {"dtype": "f32", "steps": a.steps, "stride": a.stride, "prompts": {}}
    for p in a.prompt:
        name, n = p.split("=")
        start = time.time()
        res, m = run(model, prompt_ids(name, int(n), cfg["text_config"]["vocab_size"]), a.steps, a.stride)
        meta["prompts"][name] = m
        arrays.update({f"{name}.{k}": np.ascontiguousarray(v) for k, v in res.items()})
        print(name, f"{time.time() - start:.0f} s", {k: v for k, v in m.items() if k != "prompt"}, flush=True)
    os.makedirs(a.out, exist_ok=True)
    from safetensors.numpy import save_file
    save_file(arrays, os.path.join(a.out, a.name + ".safetensors"))
    with open(os.path.join(a.out, a.name + ".json"), "w") as f:
        json.dump(meta, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
