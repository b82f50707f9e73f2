"""Makes the files beside it, as PyTorch writes them. They are there as PyTorch 1.13.1 made them."""
import collections
import os

import torch

here = os.path.dirname(os.path.abspath(__file__))


def filled(module):
    """Parameters and buffers that count up in eighths, so that a test can name them exactly."""
    value = 0
    for tensor in module.state_dict().values():
        with torch.no_grad():
            tensor.copy_((torch.arange(tensor.numel()) + value).reshape(tensor.shape) / 8)
        value += tensor.numel()
    return module


torch.manual_seed(1)
model = filled(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)))
model[1].num_batches_tracked.fill_(7)
torch.save(model.state_dict(), os.path.join(here, "python_state_dict.pt"))

optimizer = torch.optim.AdamW(model.parameters(), lr=0.25)
model(torch.ones(4, 3)).sum().backward()
optimizer.step()
base = torch.arange(6, dtype=torch.float32)
torch.save(
    {
        "optimizer": optimizer.state_dict(),
        "parameters": collections.OrderedDict(a=torch.nn.Parameter(base.clone())),
        "shared": [base, base[2:4], base.reshape(2, 3).t(), base],
        "expanded": torch.ones(1).expand(4),
        "types": {
            str(dtype)[6:]: torch.tensor([0, 1, 1], dtype=dtype)
            for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8,
                          torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64)
        },
        "scalar": torch.tensor(0.5),
        "empty": torch.empty(0, 3),
        "size": torch.Size([2, 3]),
        "float": 0.1,
        "integers": [0, 255, 256, 65535, 65536, -1, -2**31, 2**31, 2**63 - 1, -2**63],
        "tuple": (1, (2, 3), ()),
        "text": "gr\u00fcn",
        "none": None,
        "flags": [True, False],
        7: "seven",
    },
    os.path.join(here, "python_values.pt"))
torch.save({"a": torch.ones(2)}, os.path.join(here, "python_legacy.pt"),
           _use_new_zipfile_serialization=False)
