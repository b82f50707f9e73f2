#!/usr/bin/env python3
"""Writes a folder of runs as `docs/record_format.md` describes them, the same bytes each time.

    make_runs.py FOLDER [HOW_MANY]

All of it is computed, so that the browser tests and the pictures in docs/ need no training.
"""

import base64
import json
import math
import os
import random
import struct
import sys
import zlib

BEGIN = 1795000000.0  # of the first run, seconds since 1970
UPDATES = 400
HOSTILE = '<img src=x onerror=alert(1)>'


def png(height, width, pixel):
    """A grey picture; `pixel(y, x)` is from 0 to 1."""
    rows = b''.join(b'\0' + bytes(int(255 * min(max(pixel(y, x), 0), 1)) for x in range(width)) for y in range(height))

    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))

    header = struct.pack('>IIBBBBB', width, height, 8, 0, 0, 0, 0)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b'')


class Record:
    """The lines of one record."""

    def __init__(self, folder, begin):
        self.folder = folder
        self.begin = begin
        self.lines = []
        os.makedirs(folder, exist_ok=True)

    def add(self, kind, step, **keys):
        line = {'kind': kind, 'step': step, 'time': round(self.begin + 0.25 * step, 3), **keys}
        self.lines.append(json.dumps(line, ensure_ascii=True))

    def write(self):
        with open(os.path.join(self.folder, 'record.jsonl'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(self.lines) + '\n')


def config_of(name, lr, batch, optimizer):
    return f'''[trainer.init]
model_dir = "runs/{name}"
seed = 1

[trainer.init.model]
name = "Mlp"
sizes = [784, 256, 10]

[trainer.init.optimizer.{optimizer}]
lr = {lr}

[trainer.init.loop]
max_steps = {UPDATES}
eval_frequency = 50

[trainer.fit.train_dataloader]
dataset = "Glyphs"
batch_size = {batch}
'''


def add_media(record, step, rng):
    spread = 0.05 + 0.0004 * step
    edges = [-4 * spread + i * spread / 4 for i in range(33)]
    counts = [int(2000 * math.exp(-0.5 * ((edges[i] + spread / 8) / spread) ** 2) * (0.9 + 0.2 * rng.random())) for i in range(32)]
    for layer in ('net.0.weight', 'net.2.weight'):
        record.add('histogram', step, name=f'summary/param/{layer}', least=edges[0], most=edges[-1], sum=0.0, sum_of_squares=1.0,
                   count=sum(counts), not_finite=0, edges=edges, counts=counts)
    angle = 0.01 * step
    for i in range(4):
        turn = angle + i

        def pixel(y, x):
            u, v = (x - 13.5) / 9, (y - 13.5) / 9
            stroke = abs(u * math.cos(turn) + v * math.sin(turn))
            return 1.1 - 2.2 * stroke if u * u + v * v < 1.6 else 0.06

        picture = png(28, 28, pixel)
        record.add('image', step, name=f'image/{i}', height=28, width=28, data=base64.b64encode(picture).decode())
    record.add('text', step, name='sample', text=f'update {step}: ' + ' '.join(rng.choice(
        ['the', 'king', 'speaks', 'of', 'night', 'and', 'gentle', 'rivers', 'that', 'return']) for _ in range(40)))
    labels = ['ring', 'cross', 'bar', 'dot', 'arc']
    rows = []
    for i, label in enumerate(labels):
        right = int(52 + 0.08 * step + 6 * rng.random())
        others = [max(0, int((100 - right) * (0.4 if abs(i - j) == 1 else 0.1))) for j in range(5)]
        rows.append([label] + [str(right if i == j else others[j]) for j in range(5)])
    record.add('table', step, name='confusion of classes', columns=['label'] + labels, rows=rows)
    roc = [(i / 20, min(1.0, (i / 20) ** (0.5 - 0.001 * step))) for i in range(21)]
    record.add('table', step, name='roc', columns=['fpr', 'tpr'], rows=[[f'{a:.3f}', f'{b:.4f}'] for a, b in roc])


def write_run(root, number, name, has_media):
    rng = random.Random(number)
    lr = [0.1, 0.03, 0.01, 0.003][number % 4]
    batch = [32, 64, 128][number // 4 % 3]
    optimizer = ['AdamW', 'SGD'][number // 12 % 2]
    record = Record(os.path.join(root, name), BEGIN + 700.0 * number)
    record.add('session', 0, format=1, run=os.path.basename(name), version='0.2.0', updates=UPDATES, host='rondo', process=4000 + number)
    record.add('config', 0, text=config_of(name, lr, batch, optimizer))
    for metric, better in (('loss', 'lower'), ('val/loss', 'lower'), ('val/accuracy', 'higher')):
        record.add('metric', 0, text=metric, better=better)
    speed = 60 * (0.03 / lr + lr / 0.03) + batch / 8
    floor = 0.05 + 0.02 * (number % 5) + (0.2 if lr == 0.1 else 0.0)
    kind = number % 11
    last = UPDATES if kind not in (4, 7) else 230
    for step in range(5, last + 1, 5):
        loss = floor + 2.25 * math.exp(-step / speed)
        values = {'loss': loss * (1 + 0.07 * rng.gauss(0, 1)), 'lr': lr * 0.5 * (1 + math.cos(math.pi * step / UPDATES)),
                  'system/process_cpu_percent': 96 + 3 * rng.random(), 'system/memory_used_gb': 2.1 + 0.0004 * step}
        if kind == 7 and step > 220:
            values['loss'] = 'nan'
        record.add('numbers', step, values=values)
        if step % 50 == 0:
            record.add('numbers', step, values={'val/loss': loss * 1.12 + 0.015 * rng.random(),
                                                'val/accuracy': 1 - 0.38 * loss / (1 + 0.2 * loss) + 0.004 * rng.random()})
            record.add('validation', step, text='val')
            record.add('save', step, text=f'checkpoint_{step}.pt')
        if has_media and step % 20 == 0:
            add_media(record, step, rng)
    if kind == 7:
        record.add('alert', 225, level='error', text='loss is nan')
        record.add('end', last, status='failed', text='the loss of update 225 is nan; its inputs are finite')
    elif kind == 4:
        record.add('end', last, status='stopped', text='by SIGINT')
    elif kind != 9:  # a record without an end belongs to a run that crashed
        record.add('end', last, status='done', text='')
    if kind == 2:
        record.add('alert', 350, level='warn', text='val/loss did not improve for 5 validations')
    record.write()
    return record.folder


def instructions():
    """Of the step of a small MLP: module, operator, microseconds, bytes of the result, last use."""
    layers = [('net.0', 784, 512), ('net.2', 512, 512), ('net.4', 512, 256), ('net.6', 256, 10)]
    batch, made = 64, []
    for name, inputs, outputs in layers:
        made.append([f'forward of {name}', 'aten::addmm', inputs * outputs / 9000, 4 * batch * outputs, None])
        made.append([f'forward after {name}', 'aten::relu', outputs / 90, 4 * batch * outputs, None])
    made += [['forward after net.6', 'aten::_log_softmax', 5.0, 4 * batch * 10, None], ['forward after net.6', 'aten::nll_loss_forward', 1.2, 64, None],
             ['backward after net.6', 'rondo::cross_entropy_backward', 4.4, 4 * batch * 10, None]]
    ends = {}
    for depth, (name, inputs, outputs) in reversed(list(enumerate(layers))):
        made.append([f'backward of {name}', 'aten::mm', inputs * outputs / 8000, 4 * inputs * outputs, 'update'])
        made.append([f'backward of {name}', 'aten::sum.dim_IntList', 2.1, 4 * outputs, 'update'])
        ends[2 * depth + 1] = ends[2 * depth] = len(made) + 1
        if depth > 0:
            made.append([f'backward of {name}', 'aten::mm', inputs * outputs / 8500, 4 * batch * inputs, len(made) + 1])
            made.append([f'backward after {layers[depth - 1][0]}', 'aten::threshold_backward', inputs / 80, 4 * batch * inputs, len(made) + 3])
    made += [['GradNorm.on_after_backward', 'aten::norm.Scalar', 38.0, 64, None], ['update', 'rondo::adamw_', 112.0, 0, None]]
    last = len(made) - 1
    return [(module, op, us, size, last if end == 'update' else min(last, end if end is not None else ends.get(i, i + 2)))
            for i, (module, op, us, size, end) in enumerate(made)]


INSTRUCTIONS = instructions()


def write_steps(folder):
    """A traced step with its times, and a kind that runs eagerly."""
    stamp = os.path.join(folder, 'logs', '20261118_140000')
    for part in ('steps', 'profile'):
        os.makedirs(os.path.join(stamp, part), exist_ok=True)

    def report(name, **keys):
        values = {'mode': 'traced', 'reason': None, 'guards': [], 'variant_of': None, 'undone': 0, 'eager_runs': 0, 'eager_s': 0.0,
                  'share_of_time': 0.0, 'operators_recorded': 0, 'operators_replayed': 0, 'passes': {}, 'adopted_operators': {},
                  'captured_bytes': 0, 'arena_bytes': 0, 'capture_s': 0.0, 'build_s': 0.0, 'verify_s': 0.0, 'replays': 0, **keys}
        with open(os.path.join(stamp, 'steps', name + '.json'), 'w', encoding='utf-8') as file:
            file.write(json.dumps(values) + '\n')

    blocks, arena = place_blocks()
    report('train_update.0', share_of_time=0.82, operators_recorded=31, operators_replayed=len(INSTRUCTIONS), replays=397,
           passes={'identity_views': 6, 'dead_code': 3, 'cross_entropy_backward': 1, 'results_in_place': 0}, captured_bytes=2443368,
           arena_bytes=arena, capture_s=0.0041, build_s=0.0123, verify_s=0.0018)
    report('validate.0', mode='guarded', guards=[{'read': 'aten::item in forward after net.2 at model.cpp:41', 'answer': '64'}], share_of_time=0.06,
           operators_recorded=9, operators_replayed=8, replays=78, arena_bytes=131072, capture_s=0.001, build_s=0.004, verify_s=0.001)
    report('train_update.1', mode='eager', reason='Beam::forward at beam.cpp:88 gives a tensor whose shape depends on its data (aten::nonzero)',
           eager_runs=3, eager_s=0.012, share_of_time=0.03)
    program = ['step train/update', 'inputs', '  %0 image: Float[64, 784]', 'instructions']
    plan = ['plan', f'  arena: {arena} bytes', f'  own: {len(INSTRUCTIONS)} instructions'] + blocks
    events = []
    start = 0.0
    for i, (module, op, us, size, _) in enumerate(INSTRUCTIONS):
        text = f'%{i + 4} = {op}(%{max(0, i - 1)}, %{i})' if size > 0 else f'{op}([%2, %3], [%12, %13])'
        program += [f'  # the step, {module}', '  ' + text]
        plan.append('  own       ' + text)
        events.append({'name': op, 'cat': module, 'ph': 'X', 'pid': 1, 'tid': 1, 'ts': round(start, 3), 'dur': us,
                       'args': {'instruction': text, 'line': 'mlp.cpp:52', 'bytes': 3 * size + 4096}})
        start += us
    with open(os.path.join(stamp, 'steps', 'train_update.0.txt'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(program + ['outputs', '  loss = %8', ''] + plan) + '\n\ngraph()\n')
    with open(os.path.join(stamp, 'profile', 'train_update.0.json'), 'w', encoding='utf-8') as file:
        json.dump({'otherData': {'step': 'train_update.0', 'untimed_us': round(0.9 * start, 3)}, 'traceEvents': events}, file)
    with open(os.path.join(stamp, 'run.log'), 'w', encoding='utf-8') as file:
        for step in range(0, UPDATES + 1, 5):
            file.write(f'[2026-11-18 14:{step // 60:02d}:{step % 60:02d}.000] [info] update {step}: loss {2.3 * math.exp(-step / 90):.4f}\n')
            if step == 120:
                file.write(f'[2026-11-18 14:02:00.100] [warning] the loader waits for its disk: {HOSTILE}\n')
    os.symlink('20261118_140000', os.path.join(folder, 'logs', 'latest'))
    os.symlink('logs/20261118_140000/run.log', os.path.join(folder, 'latest_run.log'))


def place_blocks():
    """Lines of the memory map: the largest first, each at the lowest place that is free for its life."""
    placed = []
    for first, (_, _, _, size, last) in sorted(enumerate(INSTRUCTIONS), key=lambda one: -one[1][3]):
        if size == 0:
            continue
        last = min(max(last, first), len(INSTRUCTIONS) - 1)
        offset = 0
        for other in sorted(placed):
            if other[2] <= last and first <= other[3] and other[0] < offset + size:
                offset = max(offset, other[0] + other[1])
        placed.append((offset, size, first, last))
    lines = [f'  block at {at}: {size} bytes, instructions {first} to {last}' for at, size, first, last in sorted(placed, key=lambda one: one[2])]
    return lines, max(at + size for at, size, _, _ in placed)


def make_runs(root, how_many=24):
    """Of which the first has media and steps, and the last a name that is no good manners."""
    names = [f'sweep/lr{["0.1", "0.03", "0.01", "0.003"][i % 4]}-{i:03d}' for i in range(how_many - 1)] + [HOSTILE.replace('/', '')]
    for number, name in enumerate(names):
        folder = write_run(root, number, name, has_media=number == 1)
        if number == 1:
            write_steps(folder)
    return names


if __name__ == '__main__':
    make_runs(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24)
