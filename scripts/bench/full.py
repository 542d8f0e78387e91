#!/usr/bin/env python3
"""Runs the whole model, 19.5 GB of random weights, on a machine that has about as much memory (Linux):

  full.py --calla CALLA --forward FORWARD --folder FOLDER [--threads 2]

makes the checkpoint in FOLDER where it is missing (numpy; a minute or two), loads it with `calla eval`, and measures
decode with the file in the page cache and with none of it there. Beside each it says what was read from the disk, what
was swapped, and how long the process stood still for want of memory.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import time

from measure import Engine

MAKE = pathlib.Path(__file__).parent.parent / "oracle" / "make_checkpoint.py"
BYTES = 19_510_000_000
SPARE = 2_000_000_000  # of the disk, to be left alone
PROMPT = 64


def make(folder):
    if (folder / "config.json").exists():
        return
    free = shutil.disk_usage(folder.parent).free
    if free < BYTES + SPARE:
        sys.exit(f"full.py: {folder} needs {BYTES + SPARE:,} bytes free, there are {free:,}")
    part = folder.with_suffix(".part")
    subprocess.run([sys.executable, MAKE, "--preset", "full", "--out", part], check=True, stdout=subprocess.DEVNULL)
    part.rename(folder)


def shards(folder):
    return sorted(folder.glob("*.safetensors"))


def evict(folder):
    """Takes the files out of the page cache. Nobody may have them mapped."""
    os.sync()
    for path in shards(folder):
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fetch(folder):
    """Reads the files into the page cache, as far as there is room."""
    for path in shards(folder):
        with open(path, "rb", buffering=0) as f:
            while f.read(16 << 20):
                pass


def resident(folder):
    """The share of the files that is in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    pages = there = 0
    for path in shards(folder):
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_WRITE,
                                              flags=mmap.MAP_PRIVATE) as m:
            n = -(-len(m) // mmap.PAGESIZE)
            flags = (ctypes.c_ubyte * n)()
            address = ctypes.addressof(ctypes.c_char.from_buffer(m))
            if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(m)), flags):
                raise OSError(ctypes.get_errno(), "mincore")
            pages, there = pages + n, there + sum(b & 1 for b in bytes(flags))
    return there / pages


def fields(path):
    return dict(line.split()[:2] for line in open(path).read().replace(":", "").splitlines() if line)


class Strain:
    """What the machine and a process did since the last look."""

    def __init__(self, pid):
        self.pid = pid
        self.last = self.look()

    def look(self):
        stat = open(f"/proc/{self.pid}/stat").read().rpartition(")")[2].split()
        vm = fields("/proc/vmstat")
        stalled = 0
        if os.path.exists("/proc/pressure/memory"):
            stalled = int(open("/proc/pressure/memory").readline().rpartition("total=")[2])
        return {"read": int(fields(f"/proc/{self.pid}/io")["read_bytes"]), "faults": int(stat[9]),
                "swapped": (int(vm["pswpin"]) + int(vm["pswpout"])) * mmap.PAGESIZE, "stalled": stalled / 1e6}

    def since(self):
        now, last = self.look(), self.last
        self.last = now
        return {k: now[k] - last[k] for k in now}


def show(what, seconds, strain):
    print(f"| {what} | {seconds} | {strain['read'] / 1e9:.2f} GB | {strain['faults']:,} | {strain['swapped'] / 1e6:.0f} MB "
          f"| {strain['stalled']:.1f} s |", flush=True)


def decode(e, steps):
    """The seconds of each of some steps."""
    return [e.ask("decode 1")["seconds"] for _ in range(steps)]


def rate(times):
    return f"{len(times) / sum(times):.2f} tok/s, median step {statistics.median(times) * 1e3:.0f} ms"


def measure(a, folder, kind, steps):
    """Loads, evaluates a prompt and decodes, and prints a line for each."""
    print(f"\n{kind}: {resident(folder):.0%} of the files are in the page cache\n")
    print("| what | time | read from disk | page faults that read | swapped | stalled for memory |")
    print("| --- | --- | --- | --- | --- | --- |")
    e = Engine(shlex.split(a.forward), str(folder), a.threads)
    strain = Strain(e.process.pid)
    show("load", f"{e.load:.3f} s", strain.look() | {"swapped": 0, "stalled": 0})
    show(f"prefill {PROMPT}", f"{e.prefill(PROMPT):.2f} s", strain.since())
    first = decode(e, 8)
    show("decode, first 8 tokens", rate(first), strain.since())
    rest = decode(e, steps)
    show(f"decode, {steps} more", rate(rest), strain.since())
    last = decode(e, steps)
    show(f"decode, {steps} more", rate(last), strain.since())
    bandwidth = e.ask("bandwidth 256")["bytes_a_second"]
    print(f"\nPeak resident {e.end() / 1e9:.1f} GB; afterwards {resident(folder):.0%} of the files are in the page "
          f"cache; read bandwidth {bandwidth / 1e9:.1f} GB/s.")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--calla", required=True, help="the program")
    p.add_argument("--forward", required=True, help="command of our forward pass")
    p.add_argument("--folder", required=True, type=pathlib.Path)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--steps", type=int, default=64)
    p.add_argument("--keep", action="store_true", help="leave the checkpoint where it is")
    a = p.parse_args()
    make(a.folder)
    memory = {k: int(v) * 1024 for k, v in fields("/proc/meminfo").items()}
    print(f"Memory {memory['MemTotal'] / 1e9:.1f} GB, available {memory['MemAvailable'] / 1e9:.1f} GB, "
          f"swap {memory['SwapTotal'] / 1e9:.1f} GB; {a.threads} threads.")
    evict(a.folder)
    measure(a, a.folder, "Cold", a.steps)
    fetch(a.folder)
    measure(a, a.folder, "Warm", a.steps)
    start = time.perf_counter()
    out = subprocess.run([a.calla, "eval", "--model", a.folder, "--tokens", "1,2,3,4,5,6,7,8", "--steps", "8", "--json"],
                         check=True, capture_output=True, text=True).stdout
    print(f"\n`calla eval` of 8 tokens and 8 steps: {time.perf_counter() - start:.1f} s, tokens "
          f"{json.loads(out)['tokens']}.")
    if not a.keep:
        shutil.rmtree(a.folder)


if __name__ == "__main__":
    main()
