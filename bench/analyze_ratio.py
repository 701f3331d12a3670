#!/usr/bin/env python3
"""How fast `roofline analyze` reads a large trace, beside Python's json, in one run: processor time, and memory.

Repeats the events of a recorded trace, later each time, until the file has the size asked for, then reads it with both.
Usage: bench/analyze_ratio.py [MEGABYTES] [ROOFLINE] [--alone]    (--alone: leave Python's json out)
"""
import gzip
import os
import re
import subprocess
import sys
import tempfile

alone = "--alone" in sys.argv
if alone:
    sys.argv.remove("--alone")
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 500.0
program = sys.argv[2] if len(sys.argv) > 2 else os.path.join(root, "build/release/roofline")
seed = os.path.join(root, "tests/analyze/data/hf_llama_1b_h200_torch_profiler.json.gz")

with gzip.open(seed, "rt") as file:
    text = file.read()
begin = text.index('"traceEvents": [') + len('"traceEvents": [')
end = text.rindex("]")
head, events, tail = text[:begin], text[begin:end], text[end:]
numbers = re.compile(r'("ts": |"correlation": |"External id": |"id": )(\d+)')


def later(copy):
    """The same events, a second and a range of numbers later for each copy."""
    def moved(match):
        step = 1_000_000 if match.group(1) == '"ts": ' else 1_000_000
        return match.group(1) + str(int(match.group(2)) + copy * step)
    return numbers.sub(moved, events)


def child(command):
    """Processor time (of one core, however busy the others keep it), memory at its largest in MB, lines printed."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{command[0]}: failed")
        out.seek(0)
        return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0, len(out.read().splitlines())


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "large.json")
    with open(path, "w") as file:
        file.write(head)
        copy = 0
        while file.tell() < megabytes * 1e6:
            file.write(("," if copy else "") + later(copy))
            copy += 1
        file.write(tail)
    size = os.path.getsize(path) / 1e6
    with open(path, "rb") as file:  # both find it in the page cache
        while file.read(1 << 24):
            pass
    print(f"{size:.0f} MB, {copy} copies of {os.path.basename(seed)}")
    ours, ours_memory, lines = child([program, "analyze", path, "--format", "csv"])
    print(f"roofline analyze, all of it:  {ours:6.2f} s  {size / ours:6.0f} MB/s  {ours_memory:6.0f} MB of memory  {lines - 1} records")
    if alone:
        sys.exit()
    theirs, theirs_memory, _ = child([sys.executable, "-c", "import json, sys; json.load(open(sys.argv[1]))", path])
    print(f"Python's json, reading alone: {theirs:6.2f} s  {size / theirs:6.0f} MB/s  {theirs_memory:6.0f} MB of memory")
    print(f"ratio: {theirs / ours:.1f} times faster, {theirs_memory / ours_memory:.1f} times less memory")
