"""The networks of bench/workloads.cpp, as one writes them with PyTorch."""

import torch
from torch import nn

from workloads import VOCABULARY


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(32 * 7 * 7, 10))


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.projection(self.attention(self.norm1(x)))
        return x + self.contract(nn.functional.gelu(self.expand(self.norm2(x))))

    def attention(self, x):
        rows, context, width = x.shape
        parts = self.qkv(x).view(rows, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attend = getattr(nn.functional, "scaled_dot_product_attention", attention_before_2)
        return attend(query, key, value, is_causal=True).transpose(1, 2).reshape(x.shape)


def attention_before_2(query, key, value, is_causal):
    assert is_causal
    context, width = query.shape[-2:]
    mask = torch.ones(context, context, dtype=torch.bool).triu(1)
    scores = (query * width**-0.5) @ key.transpose(-2, -1)
    return scores.masked_fill(mask, -torch.inf).softmax(-1) @ value


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary=VOCABULARY):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(heads, width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions.weight)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, 128)
        self.lstm = nn.LSTM(128, 128, num_layers=2, batch_first=True)
        self.head = nn.Linear(128, VOCABULARY)

    def forward(self, x):
        return self.head(self.lstm(self.tokens(x))[0])


def mlp(*widths):
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def network_of(workload):
    return {"mlp": mlp, "cnn": Cnn, "gpt": Gpt, "lstm": Lstm}[workload.network](*workload.sizes)
