"""Cuts an export of Nsight Systems down to what `analyze` reads: nsys_cut.py run.sqlite small.sqlite

The rest of an export tells about the machine (environment, other processes, samples of stacks) and is many times as
large. Tables that are read are copied with all columns and rows into a new file, texts where one of them refers to them.
"""
import sqlite3
import sys

NAMES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ["demangledName", "shortName"],
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [],
    "CUPTI_ACTIVITY_KIND_MEMSET": [],
    "CUPTI_ACTIVITY_KIND_RUNTIME": ["nameId"],
    "CUPTI_ACTIVITY_KIND_DRIVER": ["nameId"],
    "NVTX_EVENTS": ["textId"],
    "TARGET_INFO_GPU": [],
}

small = sqlite3.connect(sys.argv[2])
small.execute("ATTACH ? AS whole", (sys.argv[1],))
made = dict(small.execute("SELECT name, sql FROM whole.sqlite_master WHERE type = 'table'"))
small.execute(made["StringIds"])
for table, names in NAMES.items():
    if table not in made:
        continue
    small.execute(made[table])
    small.execute(f"INSERT INTO main.{table} SELECT * FROM whole.{table}")
    for name in names:
        small.execute("INSERT OR IGNORE INTO main.StringIds SELECT * FROM whole.StringIds "
                      f"WHERE id IN (SELECT {name} FROM whole.{table} WHERE {name} IS NOT NULL)")
small.execute("UPDATE main.TARGET_INFO_GPU SET uuid = NULL, busLocation = NULL")
small.commit()
small.execute("DETACH whole")
small.execute("VACUUM")
