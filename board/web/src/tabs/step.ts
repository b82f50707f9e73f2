// The traced step: what it is made of, where its time goes, its memory, and what runs eagerly.

import {api, type RunDetail} from '../api';
import {h, s, select} from '../dom';
import {bytes, count, duration, number, shortTime} from '../format';
import type {Tab} from '../pages/run';
import {change, state} from '../state';
import {phaseOf, programOf, reportOf, timedInstructions, type Instruction, type Program, type StepReport} from '../step_file';

const groupings: [string, (one: Instruction) => string][] = [
  ['module', (one) => one.module], ['operator', (one) => one.op], ['line of code', (one) => one.source], ['instruction', (one) => one.text],
];

const mostRows = 200;

export class StepTab implements Tab {
  private readonly kinds = h('div');
  private readonly detail = h('div');
  readonly root = h('div', {class: 'step'}, this.kinds, this.detail);
  private run: RunDetail | null = null;
  private reports = new Map<string, StepReport>();
  private known = '';
  private shown = '';
  private grouping = 'module';

  show(run: RunDetail): void {
    this.run = run;
    const shape = run.steps.join('\n');
    if (run.steps.length === 0) {
      this.root.replaceChildren(h('p', {class: 'empty'}, run.status === 'running' ?
          'Steps are written when the fit ends.' : 'This run wrote no steps: eager runs record none.'));
    } else if (shape !== this.known) {
      this.known = shape;
      this.root.replaceChildren(this.kinds, this.detail);
      void this.load(run);
    }
  }

  update(): void {
    if (this.reports.size > 0) {
      this.showKinds();
      void this.showDetail();
    }
  }

  private async load(run: RunDetail): Promise<void> {
    const answers = await Promise.all(run.steps.map((key) => api.step(run.id, key).then(reportOf).catch(() => null)));
    this.reports = new Map(run.steps.flatMap((key, i): [string, StepReport][] => {
      const report = answers[i];
      return report === null ? [] : [[key, report]];
    }));
    this.shown = '';
    this.update();
  }

  private key(): string {
    const keys = [...this.reports.keys()];
    return keys.includes(state.step) ? state.step : keys.find((key) => key.startsWith('train_update')) ?? keys[0];
  }

  private showKinds(): void {
    const rows = [...this.reports].map(([key, report]) => {
      const isShown = key === this.key();
      const name = h('button', {type: 'button', class: 'as-link', 'aria-pressed': String(isShown), onclick: () => change({step: key})}, key);
      return h('tr', {class: isShown ? 'chosen' : ''}, h('td', {class: 'key'}, name), h('td', {}, modeOf(report)),
               h('td', {class: 'num'}, count(report.operators_recorded)), h('td', {class: 'num'}, count(report.operators_replayed)),
               h('td', {class: 'num'}, count(report.replays)), h('td', {class: 'num'}, report.eager_runs > 0 ? count(report.eager_runs) : ''),
               h('td', {class: 'num'}, report.share_of_time > 0 ? `${(100 * report.share_of_time).toFixed(1)} %` : ''),
               h('td', {class: 'num'}, report.mode === 'eager' ? '' : bytes(report.arena_bytes)),
               h('td', {class: 'why'}, report.reason ?? (report.variant_of === null ? '' : `a variant of ${report.variant_of}`)));
    });
    this.kinds.replaceChildren(h('div', {class: 'table-box'}, h('table', {class: 'table'}, h('thead', {}, h('tr', {},
        h('th', {}, 'Kind of step'), h('th', {}, 'How it runs'), h('th', {class: 'num'}, 'Operators recorded'), h('th', {class: 'num'}, 'replayed'),
        h('th', {class: 'num'}, 'Replays'), h('th', {class: 'num'}, 'Eager runs'), h('th', {class: 'num'}, 'Share of time'), h('th', {class: 'num'}, 'Arena'),
        h('th', {}, 'Why'))), h('tbody', {}, ...rows))));
  }

  private async showDetail(): Promise<void> {
    const key = this.key();
    const report = this.reports.get(key);
    if (key === this.shown || report === undefined) {
      return;
    }
    this.shown = key;
    const id = (this.run as RunDetail).id;
    const [text, trace] = await Promise.all([api.stepProgram(id, key).catch(() => ''), api.stepTimeline(id, key).catch(() => null)]);
    if (this.shown !== key) {
      return;
    }
    if (report.mode === 'eager') {
      this.detail.replaceChildren(h('h2', {}, key), h('p', {class: 'note'}, report.reason ?? 'This step runs as it is written.'), facts(report));
      return;
    }
    const program = programOf(text);
    const timed = trace === null ? [] : timedInstructions(trace);
    this.detail.replaceChildren(
        h('h2', {}, key), facts(report), timed.length > 0 ? timeStrip(timed) : '', memoryMap(program),
        this.operators(timed.length > 0 ? timed : program.instructions, timed.length > 0),
        timed.length > 0 ? '' : h('p', {class: 'note'}, 'No times: the callback OpProfiler writes them, and so does rondo inspect RUN --timeline.'),
        passes(report), guards(report),
        text === '' ? '' : h('details', {}, h('summary', {}, 'Program and plan as text'), h('pre', {class: 'text'}, text)));
  }

  private operators(instructions: Instruction[], isTimed: boolean): HTMLElement {
    const content = h('div');
    const choices = groupings.filter(([name]) => name !== 'line of code' || isTimed).map(([name]): [string, string] => [name, name]);
    const fill = () => {
      const of = groupings.find(([name]) => name === this.grouping)?.[1] ?? groupings[0][1];
      content.replaceChildren(groupTable(instructions, of, isTimed));
    };
    fill();
    const choice = select('by', choices, this.grouping, (name) => {
      this.grouping = name;
      fill();
    });
    return h('section', {}, h('div', {class: 'tools'}, h('h3', {}, 'Operators'), choice), content);
  }
}

function modeOf(report: StepReport): HTMLElement {
  const text = report.mode === 'guarded' ? `guarded, ${report.guards.length} ${report.guards.length === 1 ? 'read' : 'reads'}` : report.mode;
  return h('span', {class: `mode ${['eager', 'guarded'].includes(report.mode) ? report.mode : 'traced'}`}, text);
}

function facts(report: StepReport): HTMLElement {
  const rows: [string, string][] = [
    ['replays', count(report.replays)], ['arena', bytes(report.arena_bytes)], ['captured state', bytes(report.captured_bytes)],
    ['captures', shortTime(report.capture_s)], ['building', shortTime(report.build_s)], ['verification', shortTime(report.verify_s)],
    ['undone replays', report.undone > 0 ? count(report.undone) : ''], ['eager runs', report.eager_runs > 0 ? `${count(report.eager_runs)} in ${duration(report.eager_s)}` : ''],
  ];
  return h('dl', {class: 'facts'}, ...rows.filter(([, value]) => value !== '').map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

function legend(): HTMLElement {
  return h('span', {class: 'legend-line'}, ...['forward', 'backward', 'update', 'hook'].map((phase) => h('span', {}, h('i', {class: `phase ${phase}`}), phase)));
}

/** The instructions one after the other, as wide as they take time. */
function timeStrip(instructions: Instruction[]): HTMLElement {
  const all = instructions.reduce((sum, one) => sum + (one.seconds ?? 0), 0);
  const tip = h('p', {class: 'note num'}, `${shortTime(all)} in ${instructions.length} instructions`);
  let at = 0;
  const bars = instructions.map((one) => {
    const width = 1000 * (one.seconds ?? 0) / all;
    const bar = s('rect', {x: at.toFixed(3), y: 0, width: Math.max(width, 0.2).toFixed(3), height: 40, class: `phase ${phaseOf(one.module)}`});
    at += width;
    bar.addEventListener('mouseenter', () => {
      tip.textContent = `${shortTime(one.seconds ?? 0)}  ${one.op}  ${one.module}`;
    });
    return bar;
  });
  const picture = s('svg', {viewBox: '0 0 1000 40', preserveAspectRatio: 'none', class: 'strip', role: 'img', 'aria-label': 'Time of the step, by instruction'}, ...bars);
  return h('section', {}, h('div', {class: 'tools'}, h('h3', {}, 'Time'), legend()), picture, tip);
}

interface Group {
  name: string;
  members: Instruction[];
  seconds: number;
  bytes: number;
}

function groupTable(instructions: Instruction[], of: (one: Instruction) => string, isTimed: boolean): HTMLElement {
  const groups = new Map<string, Group>();
  for (const one of instructions) {
    const name = of(one) || 'not known';
    const group = groups.get(name) ?? {name, members: [], seconds: 0, bytes: 0};
    group.members.push(one);
    group.seconds += one.seconds ?? 0;
    group.bytes += one.bytes;
    groups.set(name, group);
  }
  const weight = (group: Group) => (isTimed ? group.seconds : group.bytes);
  const sorted = [...groups.values()].sort((a, b) => weight(b) - weight(a));
  const all = sorted.reduce((sum, group) => sum + weight(group), 0) || 1;
  const body = h('tbody');
  for (const group of sorted.slice(0, mostRows)) {
    const cells = (row: Group, share: number) => [
      h('td', {class: 'share'}, h('i', {class: 'bar'}, h('i', {class: `phase ${phaseOf(row.members[0].module)}`, style: {width: `${100 * share}%`}})),
        h('span', {class: 'num'}, `${(100 * share).toFixed(1)} %`)),
      isTimed && h('td', {class: 'num'}, shortTime(row.seconds)), h('td', {class: 'num'}, row.bytes > 0 ? bytes(row.bytes) : ''),
      isTimed && h('td', {class: 'num'}, row.seconds > 0 && row.bytes > 0 ? `${(row.bytes / row.seconds * 1e-9).toFixed(1)} GB/s` : ''),
      h('td', {class: 'num'}, count(row.members.length)),
    ];
    const rows = group.members.map((one) => h('tr', {class: 'member', hidden: true}, h('td', {class: 'mono', title: one.source}, one.text),
        ...cells({name: one.text, members: [one], seconds: one.seconds ?? 0, bytes: one.bytes}, (isTimed ? one.seconds ?? 0 : one.bytes) / all)));
    const name = h('button', {type: 'button', class: 'as-link', 'aria-expanded': 'false', onclick: () => {
      const isOpen = rows[0].hidden;
      rows.forEach((row) => row.hidden = !isOpen);
      name.setAttribute('aria-expanded', String(isOpen));
    }}, group.name);
    body.append(h('tr', {}, h('td', {class: 'key'}, name), ...cells(group, weight(group) / all)), ...rows);
  }
  return h('div', {class: 'table-box'}, h('table', {class: 'table operators'}, h('thead', {}, h('tr', {}, h('th', {}, 'Name'),
      h('th', {}, isTimed ? 'Share of time' : 'Share of bytes'), isTimed && h('th', {class: 'num'}, 'Time'),
      h('th', {class: 'num', title: isTimed ? 'Of arguments and results' : 'Of results in the arena'}, 'Bytes'),
      isTimed && h('th', {class: 'num'}, 'Bandwidth'), h('th', {class: 'num'}, 'Instructions'))), body),
    sorted.length > mostRows && h('p', {class: 'note'}, `The first ${mostRows} of ${sorted.length}.`));
}

/** Where each result lies in the arena, and how long: instructions to the right, addresses upwards. */
function memoryMap(program: Program): HTMLElement | string {
  if (program.blocks.length === 0 || program.arena === 0) {
    return '';
  }
  const last = program.instructions.length;
  const tip = h('p', {class: 'note num'}, `${program.blocks.length} blocks for results, in ${bytes(program.arena)}`);
  const [width, height] = [1000, 260];
  const blocks = program.blocks.map((block) => {
    const maker = program.instructions[block.first];
    const rect = s('rect', {
      x: (width * block.first / last).toFixed(2), width: Math.max(1, width * (block.last + 1 - block.first) / last).toFixed(2),
      y: (height * (1 - (block.offset + block.bytes) / program.arena)).toFixed(2), height: Math.max(0.5, height * block.bytes / program.arena).toFixed(2),
      class: `phase ${phaseOf(maker?.module ?? '')}`,
    });
    rect.addEventListener('mouseenter', () => {
      tip.textContent = `${bytes(block.bytes)} at ${bytes(block.offset)}, instructions ${block.first} to ${block.last}: ${maker?.op ?? ''}  ${maker?.module ?? ''}`;
    });
    return rect;
  });
  return h('section', {}, h('div', {class: 'tools'}, h('h3', {}, 'Memory plan'), h('span', {class: 'muted'}, 'instructions →, addresses ↑')),
           s('svg', {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'memory', role: 'img',
                     'aria-label': `${program.blocks.length} blocks of the arena over ${last} instructions`}, ...blocks), tip);
}

function passes(report: StepReport): HTMLElement | string {
  const rows = Object.entries(report.passes).filter(([, times]) => times > 0).map(([name, times]) => h('tr', {}, h('td', {class: 'key'}, name), h('td', {class: 'num'}, count(times))));
  const adopted = Object.entries(report.adopted_operators).map(([name, times]) => h('tr', {}, h('td', {class: 'key'}, name), h('td', {class: 'num'}, count(times))));
  const table = (title: string, body: HTMLElement[]) => (body.length === 0 ? '' :
      h('div', {}, h('h3', {}, title), h('table', {class: 'table'}, h('tbody', {}, ...body))));
  return h('div', {class: 'side-by-side'}, table('What passes changed', rows), table('Operators that allocate in each replay', adopted));
}

function guards(report: StepReport): HTMLElement | string {
  return report.guards.length === 0 ? '' : h('section', {}, h('h3', {}, 'Guards'),
      h('p', {class: 'muted'}, 'Values that the host read while the step was recorded. Each replay compares them.'),
      h('table', {class: 'table'}, h('tbody', {}, ...report.guards.map((guard) =>
          h('tr', {}, h('td', {class: 'mono'}, guard.read), h('td', {class: 'mono num'}, number(guard.answer)))))));
}
