#!/usr/bin/env python3
"""The model of SPEC.md in plain numpy, float32, from the safetensors files alone. Slow; for small checkpoints.

  ref.py CHECKPOINT --golden DIR     compare with golden_f32.* and print the largest differences
  ref.py CHECKPOINT --ids 1,2,3      print the last logits' top 5
"""
import argparse
import glob
import json
import os

import numpy as np

F = np.float32


def load(path):
    w = {}
    for fn in sorted(glob.glob(os.path.join(path, "model*.safetensors"))):
        raw = open(fn, "rb").read()
        n = int.from_bytes(raw[:8], "little")
        for k, v in json.loads(raw[8:8 + n]).items():
            if k == "__metadata__" or not k.startswith("language_model."):
                continue
            a, b = v["data_offsets"]
            x = np.frombuffer(raw[8 + n + a:8 + n + b], {"U32": "<u4", "BF16": "<u2", "F32": "<f4"}[v["dtype"]])
            x = x.reshape(v["shape"])
            w[k[len("language_model."):]] = (x.astype(np.uint32) << 16).view(F) if v["dtype"] == "BF16" else x
    return w


def dequant(w, name):
    q, s, b = w[name + ".weight"], w[name + ".scales"], w[name + ".biases"]
    n_in = s.shape[-1] * 64
    bits = q.shape[-1] * 32 // n_in
    code = np.stack([(q >> np.uint32(bits * i)) & np.uint32((1 << bits) - 1)
                     for i in range(32 // bits)], -1).reshape(*q.shape[:-1], n_in)
    return code.astype(F) * np.repeat(s, 64, -1) + np.repeat(b, 64, -1)


def rms(x, w, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + F(eps)) * w


def sig(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sig(x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, path):
        self.c = json.load(open(os.path.join(path, "config.json")))["text_config"]
        self.w, self.d = load(path), {}

    def lin(self, name):
        if name not in self.d:
            self.d[name] = dequant(self.w, name)
        return self.d[name]

    def new_state(self):
        return {"pos": 0, "layers": [{} for _ in range(self.c["num_hidden_layers"])]}

    def attention(self, P, x, st, pos):
        c = self.c
        T, nh, nkv, D = len(x), c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        qg = (x @ self.lin(P + "q_proj").T).reshape(T, nh, 2 * D)
        q, gate = qg[..., :D], qg[..., D:]
        k = (x @ self.lin(P + "k_proj").T).reshape(T, nkv, D)
        v = (x @ self.lin(P + "v_proj").T).reshape(T, nkv, D)
        q, k = rms(q, self.w[P + "q_norm.weight"]), rms(k, self.w[P + "k_norm.weight"])
        R = int(D * c["rope_parameters"]["partial_rotary_factor"])
        half = R // 2
        ang = (np.arange(pos, pos + T)[:, None] * float(c["rope_parameters"]["rope_theta"]) ** (-2.0 * np.arange(half) / R))
        cs, sn = np.cos(ang).astype(F)[:, None], np.sin(ang).astype(F)[:, None]

        def rope(y):
            y = y.copy()
            a, b = y[..., :half].copy(), y[..., half:R].copy()
            y[..., :half], y[..., half:R] = a * cs - b * sn, b * cs + a * sn
            return y
        q, k = rope(q), rope(k)
        st["k"] = np.concatenate([st["k"], k]) if "k" in st else k
        st["v"] = np.concatenate([st["v"], v]) if "v" in st else v
        K, V = np.repeat(st["k"], nh // nkv, 1), np.repeat(st["v"], nh // nkv, 1)
        s = np.einsum("thd,shd->hts", q, K) * F(D ** -0.5)
        s = np.where(np.arange(len(K))[None, None, :] <= (pos + np.arange(T))[None, :, None], s, -np.inf)
        o = np.einsum("hts,shd->thd", softmax(s), V)
        return (o * sig(gate)).reshape(T, -1) @ self.lin(P + "o_proj").T

    def deltanet(self, P, x, st):
        c = self.c
        T, nk, nv = len(x), c["linear_num_key_heads"], c["linear_num_value_heads"]
        dk, dv, taps = c["linear_key_head_dim"], c["linear_value_head_dim"], c["linear_conv_kernel_dim"]
        qkv = x @ self.lin(P + "in_proj_qkv").T
        z = (x @ self.lin(P + "in_proj_z").T).reshape(T, nv, dv)
        b, a = x @ self.lin(P + "in_proj_b").T, x @ self.lin(P + "in_proj_a").T
        rows = np.concatenate([st.get("conv", np.zeros((taps - 1, qkv.shape[1]), F)), qkv])
        st["conv"] = rows[-(taps - 1):]
        w = self.w[P + "conv1d.weight"][..., 0]                            # [channels, taps]
        y = silu(sum(rows[j:j + T] * w[:, j] for j in range(taps)))
        q, k, v = np.split(y, [nk * dk, 2 * nk * dk], 1)
        q, k, v = q.reshape(T, nk, dk), k.reshape(T, nk, dk), v.reshape(T, nv, dv)
        q = q / np.sqrt((q * q).sum(-1, keepdims=True) + F(1e-6)) * F(dk ** -0.5)
        k = k / np.sqrt((k * k).sum(-1, keepdims=True) + F(1e-6))
        q, k = np.repeat(q, nv // nk, 1), np.repeat(k, nv // nk, 1)
        beta = sig(b)
        g = np.exp(-np.exp(self.w[P + "A_log"]) * np.logaddexp(a + self.w[P + "dt_bias"], 0))
        S = st.get("ssm", np.zeros((nv, dv, dk), F))
        o = np.empty((T, nv, dv), F)
        for t in range(T):
            S = S * g[t][:, None, None]
            d = beta[t][:, None] * (v[t] - np.einsum("hvk,hk->hv", S, k[t]))
            S = S + d[:, :, None] * k[t][:, None, :]
            o[t] = np.einsum("hvk,hk->hv", S, q[t])
        st["ssm"] = S
        o = rms(o, self.w[P + "norm.weight"]) * silu(z)
        return o.reshape(T, -1) @ self.lin(P + "out_proj").T

    def moe(self, P, x):
        K = self.c["num_experts_per_tok"]
        p = softmax(x @ self.lin(P + "gate").T)
        idx = np.argsort(-p, -1, kind="stable")[:, :K]
        wt = np.take_along_axis(p, idx, -1)
        wt = wt / wt.sum(-1, keepdims=True)
        G, U, D = (self.lin(P + "switch_mlp." + n) for n in ("gate_proj", "up_proj", "down_proj"))
        y = np.zeros_like(x)
        for t in range(len(x)):
            for e, s in zip(idx[t], wt[t]):
                y[t] += s * (D[e] @ (silu(G[e] @ x[t]) * (U[e] @ x[t])))
        sh = (silu(x @ self.lin(P + "shared_expert.gate_proj").T) * (x @ self.lin(P + "shared_expert.up_proj").T))
        y += sig(x @ self.lin(P + "shared_expert_gate").T) * (sh @ self.lin(P + "shared_expert.down_proj").T)
        return y, idx, wt

    def forward(self, ids, st):
        rec = {"layer": [], "idx": []}
        h = self.lin("model.embed_tokens")[ids]
        for i in range(self.c["num_hidden_layers"]):
            P = f"model.layers.{i}."
            x = rms(h, self.w[P + "input_layernorm.weight"])
            if (i + 1) % self.c["full_attention_interval"]:
                h = h + self.deltanet(P + "linear_attn.", x, st["layers"][i])
            else:
                h = h + self.attention(P + "self_attn.", x, st["layers"][i], st["pos"])
            y, idx, _ = self.moe(P + "mlp.", rms(h, self.w[P + "post_attention_layernorm.weight"]))
            h = h + y
            rec["layer"].append(h)
            rec["idx"].append(idx)
        st["pos"] += len(ids)
        return rms(h, self.w["model.norm.weight"]) @ self.lin("lm_head").T, rec


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("checkpoint")
    ap.add_argument("--golden")
    ap.add_argument("--ids")
    a = ap.parse_args()
    m = Model(a.checkpoint)
    if a.ids:
        lg, _ = m.forward([int(x) for x in a.ids.split(",")], m.new_state())
        for t in np.argsort(-lg[-1])[:5]:
            print(int(t), float(lg[-1][t]))
    if a.golden:
        raw = open(os.path.join(a.golden, "golden_f32.safetensors"), "rb").read()
        n = int.from_bytes(raw[:8], "little")
        A = {k: np.frombuffer(raw[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]],
                              {"F32": F, "I32": np.int32}[v["dtype"]]).reshape(v["shape"])
             for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"}
        meta = json.load(open(os.path.join(a.golden, "golden_f32.json")))
        for name, p in meta["prompts"].items():
            st = m.new_state()
            lg, rec = m.forward(p["prompt"], st)
            ref = A[name + ".logits"]
            dl = float(np.abs(lg[-len(ref):] - ref).max())
            dh = max(float(np.abs(r[-len(A[f"{name}.layer.{i}"]):] - A[f"{name}.layer.{i}"]).max())
                     for i, r in enumerate(rec["layer"]))
            same = all((np.sort(x, -1) == np.sort(A[f"{name}.router.{i}.idx"], -1)).all() for i, x in enumerate(rec["idx"]))
            ds = max((float(np.abs(st["layers"][int(k.split(".")[2])][k.split(".")[3]]
                                   - (A[k].transpose(1, 0, 2) if k.endswith((".k", ".v")) else A[k])).max())
                      for k in A if k.startswith(name + ".state.") and k.split(".")[3] in ("ssm", "conv", "k", "v")), default=0.0)
            toks, dd = [int(lg[-1].argmax())], 0.0
            for s in range(meta["steps"]):
                lg, _ = m.forward([toks[-1]], st)
                dd = max(dd, float(np.abs(lg[-1] - A[name + ".decode.logits"][s]).max()))
                toks.append(int(lg[-1].argmax()))
            print(f"{name}: hidden {dh:.2e} logits {dl:.2e} decode logits {dd:.2e} state {ds:.2e} "
                  f"experts equal {same} tokens equal {toks == p['tokens']}")


if __name__ == "__main__":
    main()
