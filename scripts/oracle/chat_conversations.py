#!/usr/bin/env python3
"""Random conversations, rendered by the demo model's chat template as transformers' apply_chat_template renders them.

Needs transformers (5.24 made the file in the tree) and jinja2.

  chat_conversations.py bundle/demo/chat_template.jinja core/chat/testdata/conversations.jsonl.gz [COUNT]

One JSON object a line: "in", the request as the client's own JSON text (so that odd spellings of numbers, equal keys and escapes survive), with messages, tools
and options; "out", the rendered prompt, or "error", the template's reason. The how-to text of the tools block, always the same, is cut down to its first words.
"""
import gzip
import io
import json
import random
import sys

from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

WORDS = ["the", "fox", "Paris", "naïve", "漢字", "🦊", "👩‍👩‍👧‍👦", "e\u0301", "नमस्ते", "ไทย", "שלום", "a<b&c>d", "\"quoted\"", "it's", "\\n", "{}", "[1, 2]", "1e5", "—", "\u202e", "$x$", "%s",
         "<b>", "</parameter>", "&amp;", "null", "None", "C:\\dir"]
MARKERS = ["<|im_end|>", "<|im_start|>", "<|im_start|>system", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<|endoftext|>", "<think>", "<function=f>",
           "<|vision_start|>"]
SPACES = ["", "", "", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\x0b", "\x1c", "\x1f", "\x85", "\u00a0", "\u2003", "\u3000", "\u200b", "\ufeff"]
NUMBERS = ["0", "-0", "-0.0", "1.50", "1E5", "1e16", "1e-5", "123456789012345678901234567890", "3", "0.1", "1e400", "100.0", "2.5e-7", "-17", "1e22", "12345.678900"]


def text(r, n=6):
    out = []
    for _ in range(r.randrange(n + 1)):
        out.append(r.choice(MARKERS) if r.random() < r.markers else r.choice(WORDS))
        out.append(r.choice([" ", " ", " ", "\n", "\n\n", "  ", "\t"]))
    return r.choice(SPACES) + "".join(out[:-1]) + r.choice(SPACES)


def quoted(r, s):
    """s as a JSON string in one of the spellings clients use"""
    way = r.randrange(3)
    if way == 0:
        return json.dumps(s)
    out = json.dumps(s, ensure_ascii=False)
    return out.replace("/", "\\/") if way == 1 else out


def value(r, depth=0):
    """JSON text of any kind"""
    k = r.randrange(6 if depth < 4 else 4)
    if k == 0:
        return quoted(r, text(r, 4))
    if k == 1:
        return r.choice(["true", "false", "null"])
    if k in (2, 3):
        return r.choice(NUMBERS)
    gap = r.choice(["", " ", "\n  "])
    if k == 4:
        return "[" + gap + ("," + gap).join(value(r, depth + 1) for _ in range(r.randrange(4))) + gap + "]"
    return obj(r, [(r.choice(["a", "b", "c", "é", "key one", "_x", "items", "get"]), value(r, depth + 1)) for _ in range(r.randrange(4))], gap)


def obj(r, pairs, gap=""):
    return "{" + gap + ("," + gap).join(quoted(r, k) + ":" + gap + v for k, v in pairs) + gap + "}"


def tool(r, i):
    params = [(f"p{j}", obj(r, [("type", quoted(r, r.choice(["string", "integer", "object"]))), ("description", quoted(r, text(r, 5)))])) for j in range(r.randrange(4))]
    f = [("name", json.dumps(f"tool_{i}")), ("description", quoted(r, text(r))), ("parameters", obj(r, [("type", '"object"'), ("properties", obj(r, params))]))]
    if r.random() < 0.2:
        f.append(("x-extra", value(r)))
    return obj(r, [("type", '"function"'), ("function", obj(r, f))])


def content(r):
    k = r.random()
    if k < 0.72:
        return quoted(r, text(r))
    if k < 0.8:
        return "null"
    parts = [obj(r, [("type", '"text"'), ("text", quoted(r, text(r, 3)))]) for _ in range(r.randrange(4))]
    if r.random() < 0.04:
        parts.append(obj(r, [("type", '"audio"'), ("audio", '"x"')]))
    return "[" + ",".join(parts) + "]"


def calls(r):
    out = []
    for i in range(r.randrange(1, 4)):
        names = r.sample(["city", "days", "opts", "text", "é", "x y"], r.randrange(4))
        f = obj(r, [("name", json.dumps(f"tool_{r.randrange(3)}")), ("arguments", obj(r, [(n, value(r)) for n in names + names[:r.random() < 0.1]]))])
        out.append(obj(r, [("id", json.dumps(f"call_{i}")), ("type", '"function"'), ("function", f)]) if r.random() < 0.8 else f)
    return "[" + ",".join(out) + "]"


def assistant(r, with_calls):
    m = [("role", '"assistant"')]
    k = r.random()
    if k < 0.3:
        think = r.choice(["<think>\n", "<think>", "", "x <think>", "\n"]) + text(r) + r.choice(["\n</think>\n\n", "</think>", "</think>\n", "</think> mid </think>\n"]) + text(r)
        m.append(("content", quoted(r, think)))
    elif k < 0.95:
        m.append(("content", content(r)))
    if r.random() < 0.3:
        m.append(("reasoning_content", quoted(r, text(r))))
    if with_calls:
        m.append(("tool_calls", calls(r)))
    r.shuffle(m)
    return obj(r, m)


def message(r, role):
    if r.random() < 0.02:
        return obj(r, [("role", json.dumps(role))])
    if role == "user" and r.random() < 0.05:
        return obj(r, [("role", '"user"'), ("content", quoted(r, "<tool_response>\n" + text(r) + "\n</tool_response>" + r.choice(["", " ", "x"])))])
    return obj(r, [("role", json.dumps(role)), ("content", content(r))])


def conversation(r):
    out = [message(r, "system")] if r.random() < 0.4 else []
    if r.random() < 0.03:
        out.append(message(r, "tool"))
    for _ in range(r.randrange(1, 5)):
        out.append(message(r, "user"))
        for _ in range(r.choice([0, 0, 1, 3])):
            out.append(assistant(r, True))
            out += [message(r, "tool") for _ in range(r.randrange(3))]
        if r.random() < 0.8:
            out.append(assistant(r, False))
    if r.random() < 0.05:
        out.insert(r.randrange(len(out) + 1), message(r, r.choice(["system", "robot", "developer", "tool"])))
    if r.random() < 0.02:
        out = [message(r, "system")]
    return out


def request(r):
    r.markers = r.choice([0, 0.15])
    options = [("add_generation_prompt", r.choice(["true", "true", "false"]))]
    if r.random() < 0.7:
        options.append(("enable_thinking", r.choice(["true", "false"])))
    if r.random() < 0.3:
        options.append(("preserve_thinking", r.choice(["true", "false"])))
    fields = [("messages", "[" + ",".join(conversation(r)) + "]"), ("options", obj(r, options))]
    if r.random() < 0.35:
        fields.append(("tools", "[" + ",".join(tool(r, i) for i in range(r.randrange(4))) + "]"))
    return obj(r, fields)


def render(template, req):
    try:
        out, _ = render_jinja_template(conversations=[req["messages"]], tools=req.get("tools"), chat_template=template, **req["options"])
    except TemplateError as e:
        return {"error": str(e)}
    head, found, tail = out[0].partition("\n\nIf you choose to call a function ONLY")
    return {"out": head + found + tail[tail.index("</IMPORTANT>"):] if found else out[0]}


def main():
    template, path = open(sys.argv[1], encoding="utf-8").read(), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 500
    r = random.Random(20260701)
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0, compresslevel=9) as f:
        for _ in range(count):
            text = request(r)
            line = {"in": text, **render(template, json.loads(text))}
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    open(path, "wb").write(buffer.getvalue())


main()
