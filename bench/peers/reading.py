#!/usr/bin/env python3
"""Times reading a table and pictures: pandas, torchvision and rondo's reading_bench, in turns.

  python3 bench/peers/reading.py table --megabytes=1000 --reading-bench=build/bench/reading_bench
  python3 bench/peers/reading.py images --count=2000 --reading-bench=build/bench/reading_bench

The data are made first, below --dir. One thread for a table; pictures are 500 x 375 JPEGs, cropped at random to 224,
flipped and normalised, by one worker and by two. A line of JSON for each, of the median round. A library that is not
installed is left out, with a word on standard error.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ.update(OMP_NUM_THREADS="1")

import numpy as np

COLUMNS = 20
HEIGHT, WIDTH = 375, 500


def make_table(path, megabytes):
    """Numbers of four digits, as measurements have them."""
    if path.exists():
        return
    random = np.random.default_rng(1)
    with open(path, "w") as table:
        table.write(",".join(f"c{i}" for i in range(COLUMNS)) + "\n")
        while table.tell() < megabytes * 1_000_000:
            rows = random.normal(scale=100.0, size=(10_000, COLUMNS))
            table.write("\n".join(",".join(f"{x:.4f}" for x in row) for row in rows) + "\n")


def make_images(folder, count):
    """Waves of some colours under noise: a JPEG of them is as large as that of a photo, about 60 KB."""
    from PIL import Image

    random = np.random.default_rng(1)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    for i in range(count):
        path = folder / f"class{i % 10}" / f"{i}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        waves = [np.sin(x / a + y / b) for a, b in random.uniform(5, 60, size=(3, 2))]
        picture = 128 + 80 * np.stack(waves, axis=-1) + random.normal(scale=12, size=(HEIGHT, WIDTH, 3))
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(path, quality=85)


def pandas_table(path):
    import pandas

    start = time.perf_counter()
    rows = len(pandas.read_csv(path, dtype=np.float32))
    seconds = time.perf_counter() - start
    return {"peer": "pandas", "table": path.name, "rows": rows, "seconds": round(seconds, 3),
            "mb_per_s": round(path.stat().st_size / 1e6 / seconds, 1)}


def torchvision_images(folder, workers):
    import torch
    from torchvision import datasets, transforms

    data = datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, num_workers=workers)
    start = time.perf_counter()
    images = sum(len(label) for _, label in loader)
    seconds = time.perf_counter() - start
    return {"peer": "torchvision", "workers": workers, "images": images, "seconds": round(seconds, 3),
            "images_per_s": round(images / seconds, 1)}


def rondo(program, *arguments):
    output = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def print_medians(rounds, contenders):
    """Each round every contender has its turn; `contenders` are functions by name."""
    lines = {}
    for _ in range(rounds):
        for name, contender in list(contenders.items()):
            try:
                lines.setdefault(name, []).append(contender())
            except ImportError as why:
                print(f"{name} is left out: {why}", file=sys.stderr)
                del contenders[name]
    for of_one in lines.values():
        median = statistics.median_low([line["seconds"] for line in of_one])
        print(json.dumps(next(line for line in of_one if line["seconds"] == median)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("table", "images"))
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("/var/tmp/rondo_reading"))
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the table")
    parser.add_argument("--count", type=int, default=2000, help="number of pictures")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median counts")
    parser.add_argument("--reading-bench", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    asked.dir.mkdir(parents=True, exist_ok=True)
    if asked.what == "table":
        path = asked.dir / f"numbers{asked.megabytes}.csv"
        make_table(path, asked.megabytes)
        print_medians(asked.rounds, {"pandas": lambda: pandas_table(path),
                                     "rondo": lambda: rondo(asked.reading_bench, "table", path)})
        return
    folder = asked.dir / f"pictures{asked.count}"
    make_images(folder, asked.count)
    for workers in (1, 2):
        print_medians(asked.rounds, {
            "torchvision": lambda: torchvision_images(folder, workers),
            "rondo": lambda: rondo(asked.reading_bench, "images", folder, f"--workers={workers}")})


if __name__ == "__main__":
    main()
