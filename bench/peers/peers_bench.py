#!/usr/bin/env python3
"""Times one training step in Python frameworks and in rondo, in turns: one thread, the workloads of step_bench.

  python3 bench/peers/peers_bench.py --workload=mlp --step-bench=build/bench/step_bench
  python3 bench/peers/peers_bench.py --workload=gpt --device=cuda --precision=bf16 --step-bench=…

Each round every framework begins anew, with steps that are not timed; the median round counts. A line of JSON for
each, as step_bench writes them. A framework that is not installed is left out, with a word on standard error.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # PyTorch uses the same card

from peers import PEERS, step_bench
from workloads import WORKLOADS

WARM_UP = 20


def timed(name, workload, peer, steps):
    """A round of one framework, or None."""
    try:
        train = PEERS[peer](workload)
    except (ImportError, NotImplementedError) as why:
        print(f"{peer} is left out: {why}", file=sys.stderr)
        return None
    train(WARM_UP)
    start = time.perf_counter()
    loss = train(steps)
    step = (time.perf_counter() - start) / steps
    return {
        "peer": peer, "workload": name, "device": workload.device, "precision": workload.precision,
        "threads": 1, "us_per_step": round(step * 1e6, 1),
        "samples_per_s": round(workload.shape[0] / step), "final_loss": loss}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", choices=WORKLOADS, default="mlp")
    parser.add_argument("--peer", choices=PEERS, action="append", help="who is timed; all")
    parser.add_argument("--step-bench", type=pathlib.Path, help="rondo's, timed in turns with them")
    parser.add_argument("--steps", type=int, default=200, help="updates of a round")
    parser.add_argument("--rounds", type=int, default=5, help="of which the median counts")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    asked = parser.parse_args()
    if asked.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    workload = dataclasses.replace(WORKLOADS[asked.workload], device=asked.device, precision=asked.precision)
    peers = asked.peer or list(PEERS)
    rounds = {}
    for _ in range(asked.rounds):
        lines = step_bench(asked.step_bench, asked.workload, workload, asked.steps) if asked.step_bench else []
        lines += [timed(asked.workload, workload, peer, asked.steps) for peer in peers]
        peers = [peer for peer, line in zip(peers, lines[-len(peers):]) if line]
        for line in filter(None, lines):
            rounds.setdefault(line["peer"], []).append(line)
    for of_peer in rounds.values():
        median = statistics.median_low([line["us_per_step"] for line in of_peer])
        print(json.dumps(next(line for line in of_peer if line["us_per_step"] == median)))


if __name__ == "__main__":
    main()
