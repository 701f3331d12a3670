"""Records one PyTorch trace for each of two ranks that share every product of a few blocks. Needs no second device.

    python3 tests/analyze/record/two_ranks.py FOLDER [cpu|cuda]

Collectives go through gloo, which takes tensors of the host and of a device; rank 1 computes its blocks twice, so rank 0
must wait for it.
"""
import datetime
import os
import sys

import torch
import torch.distributed as distributed
import torch.multiprocessing
from torch.profiler import ProfilerActivity, profile, record_function


def run(rank, folder, kind):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", GLOO_SOCKET_IFNAME="lo")
    distributed.init_process_group("gloo", rank=rank, world_size=2, timeout=datetime.timedelta(seconds=20))
    torch.set_num_threads(2)
    up = torch.randn(1024, 2048, device=kind)
    down = torch.randn(2048, 1024, device=kind)
    ids = torch.randint(0, 4000, (1, 96), device=kind)
    words = torch.nn.Embedding(4000, 1024, device=kind)

    def step(tokens):
        x = words(tokens)
        for _ in range(3):
            for _ in range(1 + rank):
                part = torch.relu(x @ up) @ down
            distributed.all_reduce(part)
            x = x + part
        return x

    def body():
        with torch.no_grad():
            with record_function("prefill"):
                step(ids)
            for i in range(3):
                with record_function(f"decode_{i}"):
                    step(ids[:, :1])
            if kind == "cuda":
                torch.cuda.synchronize()

    body()
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if kind == "cuda" else [])
    with profile(activities=activities, record_shapes=True) as prof:
        body()
    distributed.barrier()
    prof.export_chrome_trace(os.path.join(folder, f"two_ranks_{kind}_{rank}.json.gz"))
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(run, args=(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cpu"), nprocs=2)
