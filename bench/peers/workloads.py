"""The training steps of bench/workloads.cpp, but for accum, in numbers that any framework can build them from."""

import dataclasses

import numpy as np

VOCABULARY = 65
COPIES = 16  # of the batch in memory, which steps go round: docs/decisions/020
RATES = {"sgd": 0.01, "adam": 1e-3, "adamw": 1e-3}


@dataclasses.dataclass
class Workload:
    network: str  # mlp, cnn, gpt or lstm
    sizes: tuple  # mlp: widths; gpt: layers, heads, width, context
    shape: tuple  # of a batch's "x"; tokens where classes are a vocabulary
    classes: int
    optimizer: str
    device: str = "cpu"
    precision: str = "fp32"

    @property
    def takes_tokens(self):
        return self.network in ("gpt", "lstm")

    def batches(self):
        """The same batch, (x, label), in several places."""
        random = np.random.default_rng(1)
        if self.takes_tokens:
            x, label = random.integers(self.classes, size=(2, *self.shape))
        else:
            x = random.random(self.shape, dtype=np.float32)
            label = random.integers(self.classes, size=self.shape[0])
        return [(x.copy(), label.copy()) for _ in range(COPIES)]


WORKLOADS = {
    "tiny": Workload("mlp", (16, 32, 32, 10), (32, 16), 10, "sgd"),
    "mlp": Workload("mlp", (784, 256, 256, 10), (64, 784), 10, "sgd"),
    "adam": Workload("mlp", (784, 256, 256, 10), (64, 784), 10, "adamw"),
    "cnn": Workload("cnn", (), (64, 1, 28, 28), 10, "sgd"),
    "gpt": Workload("gpt", (4, 4, 128, 64), (8, 64), VOCABULARY, "adamw"),
    "gptbig": Workload("gpt", (6, 6, 384, 256), (4, 256), VOCABULARY, "adamw"),
    "gpt124m": Workload("gpt", (12, 12, 768, 1024, 50257), (8, 1024), 50257, "adamw"),
    "lstm": Workload("lstm", (), (16, 64), VOCABULARY, "adam"),
}
