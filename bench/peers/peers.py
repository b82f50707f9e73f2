"""Who is timed. Each function builds one workload with one framework and returns train(steps) -> loss; it throws
ImportError where the framework is not installed, and NotImplementedError where nobody wrote the workload for it."""

import json
import pathlib
import subprocess

from workloads import COPIES, RATES


def torch_parts(workload, fused, **more):
    import torch

    from torch_networks import network_of

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = network_of(workload).to(workload.device)
    rate = RATES[workload.optimizer]
    rule = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    options = {"momentum": 0.9} if workload.optimizer == "sgd" else {}
    if fused:
        options["fused"] = True
    return model, rule[workload.optimizer](model.parameters(), rate, **options, **more)


def torch_batches(workload):
    import torch

    return [[torch.from_numpy(part).to(workload.device) for part in batch] for batch in workload.batches()]


def torch_loss_of(workload, model):
    """The loss of a batch, under bf16's autocast where the workload says so."""
    import torch
    from torch.nn.functional import cross_entropy

    def loss_of(x, label):
        with torch.autocast(workload.device, torch.bfloat16, enabled=workload.precision == "bf16",
                            cache_enabled=False):
            return cross_entropy(model(x).flatten(0, -2), label.flatten())

    return loss_of


def pytorch(workload):
    """The loop that everybody writes."""
    model, optimizer = torch_parts(workload, fused=False)
    return torch_loop(workload, torch_loss_of(workload, model), optimizer)


def pytorch_graph(workload):
    """The whole step as a CUDA graph, with a fused optimizer that can be captured."""
    import torch

    if workload.device != "cuda":
        raise NotImplementedError("a graph is CUDA's")
    more = {} if workload.optimizer == "sgd" else {"capturable": True}
    model, optimizer = torch_parts(workload, fused=True, **more)
    loss_of = torch_loss_of(workload, model)
    data = torch_batches(workload)
    x, label = (part.clone() for part in data[0])

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, label)
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()  # as PyTorch's notes on CUDA graphs have it
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step()

    def train(steps):
        for i in range(steps):
            x.copy_(data[i % COPIES][0], non_blocking=True)
            label.copy_(data[i % COPIES][1], non_blocking=True)
            graph.replay()
        return loss.item()

    return train


def pytorch_autotune(workload):
    """pytorch_compile, with kernels chosen by timing them, and graphs."""
    return pytorch_compile(workload, mode="max-autotune")


def pytorch_compile(workload, mode=None):
    """torch.compile of forward and loss, and with them of backward, and a fused optimizer."""
    import torch

    if not hasattr(torch, "compile"):
        raise ImportError(f"PyTorch {torch.__version__} has no torch.compile")
    torch.compiler.reset()  # what an earlier round compiled would be asked first at each call
    model, optimizer = torch_parts(workload, fused=True)
    loss_of = torch.compile(torch_loss_of(workload, model), mode=mode)
    return torch_loop(workload, loss_of, optimizer)


def torch_loop(workload, loss_of, optimizer):
    data = torch_batches(workload)

    def train(steps):
        for i in range(steps):
            optimizer.zero_grad()
            loss = loss_of(*data[i % COPIES])
            loss.backward()
            optimizer.step()
        return loss.item()

    return train


def lightning(workload):
    """A LightningModule under a Trainer without loggers, checkpoints and progress bar."""
    import logging
    import warnings

    import lightning as L
    import torch

    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    model, optimizer = torch_parts(workload, fused=False)
    loss_of = torch_loss_of(workload, model)
    data = torch_batches(workload)

    class Endless(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                yield from data

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _):
            self.loss = loss_of(*batch)
            return self.loss

        def configure_optimizers(self):
            return optimizer

    module = Module()
    loader = torch.utils.data.DataLoader(Endless(), batch_size=None)

    def train(steps):
        trainer = L.Trainer(
            accelerator=workload.device, devices=1, max_steps=steps, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False)
        trainer.fit(module, loader)
        return module.loss.item()

    return train


def jax(workload):
    """The whole step under jit with its state donated, and optax. MLPs in fp32 only."""
    import jax
    import jax.numpy as jnp
    import optax

    if workload.precision != "fp32":
        raise NotImplementedError(f"{workload.precision} is not written for JAX")
    if workload.network != "mlp":
        raise NotImplementedError(f"{workload.network} is not written for JAX")
    widths = workload.sizes
    keys = jax.random.split(jax.random.key(1), len(widths))
    parameters = [
        (jax.random.uniform(key, (i, o), minval=-1.0, maxval=1.0) / i**0.5, jnp.zeros(o))
        for key, i, o in zip(keys, widths, widths[1:])
    ]
    rate = RATES[workload.optimizer]
    update = (optax.sgd(rate, momentum=0.9) if workload.optimizer == "sgd"
              else optax.adamw(rate, weight_decay=0.01))
    data = [(jnp.asarray(x), jnp.asarray(label)) for x, label in workload.batches()]

    def loss_of(parameters, x, label):
        for weight, bias in parameters[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        weight, bias = parameters[-1]
        return optax.softmax_cross_entropy_with_integer_labels(x @ weight + bias, label).mean()

    def step(parameters, state, x, label):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, label)
        changes, state = update.update(gradients, state, parameters)
        return optax.apply_updates(parameters, changes), state, loss

    step = jax.jit(step, donate_argnums=(0, 1))
    kept = [parameters, update.init(parameters)]

    def train(steps):
        for i in range(steps):
            *kept[:], loss = step(*kept, *data[i % COPIES])
        return float(loss)

    return train


PEERS = {"pytorch": pytorch, "pytorch-graph": pytorch_graph, "pytorch-compile": pytorch_compile,
         "pytorch-autotune": pytorch_autotune, "lightning": lightning, "jax": jax}


def step_bench(program: pathlib.Path, name, workload, steps):
    """The lines of rondo's step_bench for a round, in a process of its own."""
    command = [program, f"--workload={name}", f"--device={workload.device}", f"--precision={workload.precision}",
               "--threads=1", f"--steps={steps}", "--rounds=1", "--backend=libtorch", "--backend=traced", "--backend=fit"]
    if workload.device == "cuda":
        command += ["--backend=graph", "--backend=eager"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]
