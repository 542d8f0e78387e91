#!/usr/bin/env python3
"""Measures Calla and its peers beside each other, and writes a table:

  measure.py --calla FORWARD --llama FORWARD [--mlx FORWARD] --threads 2 NAME=CHECKPOINT,GGUF... >table.md

README.md says what is measured and how. Needs nothing but Python; scripts/bench/run makes what the arguments name.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

PROMPTS = (128, 512, 2048)
CONTEXT = 128  # tokens evaluated before those whose decoding is measured, and from the start to the first token
STEPS = 32  # tokens decoded at a time
CAPACITY = 2560  # tokens that a sequence may have


class Engine:
    """A process that evaluates what it is told to, line by line."""

    processor_time = False  # what is timed, instead of the time that passes

    def __init__(self, command, model, threads, options=()):
        if sys.platform == "darwin":
            command = ["/usr/bin/time", "-l", *command]
        self.command = [*command, model, str(threads), str(CAPACITY), *options]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads or 1))
        self.born = time.perf_counter()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            stderr=subprocess.PIPE if sys.platform == "darwin" else None)
        hello = self.read()
        self.load, self.system = hello["loaded"], hello["system"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"measure.py: {shlex.join(self.command)} ended: {self.process.wait()}")
        return json.loads(line)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def prefill(self, n):
        return self.timed(f"prefill {n}")

    def decode(self, n):
        return self.timed(f"decode {n}")

    def timed(self, line):
        if not self.processor_time:
            return self.ask(line)["seconds"]
        before = self.spent()
        self.ask(line)
        return self.spent() - before

    def spent(self):
        """The processor time of all threads so far (Linux)."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return sum(int((t / "schedstat").read_text().split()[0]) for t in tasks.iterdir()) / 1e9

    def end(self):
        """Ends the process and returns the most memory that was resident at once, mapped files included, in bytes."""
        self.process.stdin.close()
        notes = self.process.stderr.read() if self.process.stderr else ""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if self.process.returncode:
            raise SystemExit(f"measure.py: {shlex.join(self.command)} ended with {self.process.returncode}")
        if sys.platform == "darwin":  # what a GPU holds is part of the footprint alone
            return max(int(line.split()[0]) for line in notes.splitlines()
                       if "maximum resident set size" in line or "peak memory footprint" in line)
        return usage.ru_maxrss * 1024


class Cell:
    """What was measured of two engines, taken in turns so that both have the same share of what the machine does
    besides."""

    def __init__(self, what, unit, work):
        self.what, self.unit, self.work = what, unit, work
        self.times = {}

    def add(self, name, seconds):
        self.times.setdefault(name, []).append(seconds)

    def best(self, name):
        return min(self.times[name])

    def ratio(self, ours, theirs):
        """How many times faster ours is: of the best runs, and of each pair of neighbours the median."""
        pairs = [b / a for a, b in zip(self.times[ours], self.times[theirs])]
        return self.best(theirs) / self.best(ours), statistics.median(pairs)


def note(cell):
    """Tells whoever waits for the table."""
    print(f"  {cell.what}: " + ", ".join(f"{n} {min(t):.3f} s" for n, t in cell.times.items()), file=sys.stderr)
    return cell


def turns(engines, rounds, measure):
    """A-B-B-A, as often as rounds says. An engine's n-th time was taken beside the others' n-th."""
    for r in range(rounds):
        for name in engines if r % 2 == 0 else reversed(engines):
            measure(name)


def resident(makers, rounds, prompts, context, steps):
    """Speeds of engines that stay loaded, and the most memory each took."""
    engines = {name: make() for name, make in makers.items()}
    cell = Cell(f"decode at {context}", "tok/s", steps)
    for e in engines.values():
        e.prefill(context)
        e.decode(min(8, steps))

    def decode(name):
        engines[name].prefill(context)
        cell.add(name, engines[name].decode(steps))
    turns(list(engines), 2 * rounds, decode)
    cells = [note(cell)]
    for n in prompts:
        cell = Cell(f"prefill {n}", "tok/s", n)
        for e in engines.values():
            e.prefill(min(n, 512))  # pages and caches are warm
        turns(list(engines), rounds if n < 2048 else max(2, rounds // 2),
              lambda name: cell.add(name, engines[name].prefill(n)))
        cells.append(note(cell))
    systems = {name: e.system for name, e in engines.items()}
    return cells, {name: e.end() for name, e in engines.items()}, systems


def bandwidth(maker):
    """How many bytes a second the threads of a process of its own can read."""
    e = maker()
    best = e.ask("bandwidth 512")["bytes_a_second"]
    e.end()
    return best


def starts(makers, rounds, prompt):
    """Times of fresh processes: until loaded as the engine tells it, and from the start of the process to the first
    token after a prompt."""
    load = Cell("load", "s", None)
    first = Cell(f"start to first token, prompt of {prompt}", "s", None)

    def start(name):
        e = makers[name]()
        e.prefill(prompt)
        first.add(name, time.perf_counter() - e.born)
        load.add(name, e.load)
        e.end()
    turns(list(makers), rounds, start)
    return [note(load), note(first)]


def rows(cells, peaks, names):
    """The table's lines."""
    theirs = names[1]
    for c in cells:
        values = [f"{c.work / c.best(n):,.1f} {c.unit}" if c.work else f"{c.best(n):.3f} {c.unit}" for n in names]
        best, median = c.ratio("Calla", theirs)
        yield [c.what, *values, f"{best:.2f}", f"{median:.2f}"]
        if c.what.startswith("prefill"):
            yield [f"time to first token, {c.what.split()[1]}", *(f"{c.best(n):.3f} s" for n in names), f"{best:.2f}",
                   f"{median:.2f}"]
    if peaks:
        values = [f"{peaks[n] / 1e6:,.0f} MB" for n in names]
        yield ["peak memory", *values, f"{peaks['Calla'] / peaks[theirs]:.2f} of it", ""]


def table(title, names, lines):
    print(f"\n### {title}\n")
    print("| what | " + " | ".join(names) + " | ratio of the best | median ratio |")
    print("| --- " * (len(names) + 3) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    sys.stdout.flush()


def check(title, makers):
    """Says how far apart the engines' logits are after a short prompt, and how many greedy tokens they share."""
    logits, tokens = [], []
    for make in makers.values():
        e = make()
        e.prefill(16)
        logits.append(e.ask("logits 0")["logits"])
        tokens.append(e.ask("greedy 16")["tokens"])
        e.end()
    ours, theirs = logits
    mean = statistics.fmean(ours)
    spread = sum((x - mean) ** 2 for x in ours) ** 0.5
    apart = sum((x - y) ** 2 for x, y in zip(ours, theirs)) ** 0.5
    same = next((i for i, (x, y) in enumerate(zip(*tokens)) if x != y), len(tokens[0]))
    print(f"{title}: logits apart by {apart / spread:.2%} of their spread, {same} of {len(tokens[0])} greedy tokens are "
          "the same before one differs", flush=True)


def compare(title, makers, a):
    """Measures two engines and prints what came of it."""
    names = list(makers)
    cells, peaks, systems = resident(makers, a.rounds, a.prompts, a.context, a.steps)
    read = bandwidth(makers["Calla"]) if a.threads else None
    if a.starts:
        cells += starts(makers, a.starts, a.context)
    table(title, names, rows(cells, peaks, names))
    if read:
        print(f"\nRead bandwidth {read / 1e9:.1f} GB/s.")
    print("\n" + "; ".join(f"{n}: {s}" for n, s in systems.items()) + ".")
    return {"title": title, "peak": peaks, "bandwidth": read, "systems": systems,
            "cells": [{"what": c.what, "work": c.work, "seconds": c.times} for c in cells]}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--calla", required=True, help="command of our forward pass")
    p.add_argument("--llama", help="command of llama.cpp's")
    p.add_argument("--mlx", help="command of mlx-lm's")
    p.add_argument("--option", action="append", default=[], help="for llama.cpp's forward: ubatch=N, map=0")
    p.add_argument("--threads", type=int, default=2, help="of the processor; 0 measures the GPU")
    p.add_argument("--rounds", type=int, default=4, help="runs of each prefill; decode has twice as many")
    p.add_argument("--starts", type=int, default=4, help="fresh processes")
    p.add_argument("--prompts", type=lambda s: [int(n) for n in s.split(",") if n], default=PROMPTS)
    p.add_argument("--context", type=int, default=CONTEXT)
    p.add_argument("--steps", type=int, default=STEPS)
    p.add_argument("--processor-time", action="store_true",
                   help="one thread's, on a machine that has other work too")
    p.add_argument("--check", action="store_true", help="compare values instead of speeds")
    p.add_argument("--json", help="file for every single time")
    p.add_argument("models", nargs="+", metavar="NAME=CHECKPOINT[,GGUF]")
    a = p.parse_args()
    if a.processor_time and a.threads != 1:
        p.error("--processor-time is for one thread: several spend it on waiting for each other")
    return a


def main():
    a = arguments()
    Engine.processor_time = a.processor_time
    raw = []

    def keep():
        if a.json:
            with open(a.json, "w") as f:
                json.dump(raw, f, indent=1)
    for m in a.models:
        name, _, paths = m.partition("=")
        checkpoint, _, gguf = paths.partition(",")
        ours = {"Calla": lambda: Engine(shlex.split(a.calla), checkpoint, a.threads)}
        theirs = {}
        if a.llama and gguf:
            theirs["llama.cpp"] = lambda: Engine(shlex.split(a.llama), gguf, a.threads, a.option)
        if a.mlx:
            theirs["mlx-lm"] = lambda: Engine(shlex.split(a.mlx), checkpoint, a.threads)
        for peer, make in theirs.items():
            where = f"{a.threads} thread" + "s" * (a.threads != 1) if a.threads else "GPU"
            if a.processor_time:
                where += ", processor time"
            title = ", ".join([name, where, *a.option])
            if a.check:
                check(f"{title}, {peer}", {**ours, peer: make})
            else:
                raw.append(compare(title, {**ours, peer: make}, a))
                keep()


if __name__ == "__main__":
    main()
