// Charts of many metrics. Those in sight ask for their series, the others when they come into it.

import {api, type Series} from './api';
import {Chart} from './chart';
import {assignColors} from './colors';
import {check, h, nearness, regexField, regexOf, select, button, settled} from './dom';
import {change, state} from './state';
import {store} from './store';

interface Card {
  chart: Chart;
  isNear: boolean;
  wanted: string;  // what it should show
  asked: string;   // what it shows, or asks for
  abort: AbortController | null;
}

const axes: [string, string][] = [
  ['update', 'update'], ['epoch', 'epoch'], ['samples', 'samples'], ['tokens', 'tokens'], ['time', 'wall time'],
];

/** The group that a metric is shown in: what is before its first slash. */
function groupOf(metric: string): string {
  const group = metric.includes('/') ? metric.slice(0, metric.indexOf('/')) : '';
  return group === '' || group === 'lr' ? 'training' : group;
}

/** Training first, system last. */
function orderOf(group: string): string {
  return group === 'training' ? '0' : group === 'system' ? '2' : `1${group}`;
}

/** Fields for what all charts have in common. */
export function chartTools(): {root: HTMLElement, update: () => void} {
  const smooth = h('input', {type: 'range', min: '0', max: '0.99', step: '0.01', id: 'smooth', 'aria-label': 'Smoothing'});
  const weight = h('output', {class: 'num', for: 'smooth'});
  const ask = settled(90, () => change({smooth: Number(smooth.value)}));
  smooth.addEventListener('input', () => {
    weight.textContent = Number(smooth.value).toFixed(2);
    ask();
  });
  const metrics = regexField('Filter metrics by regular expression', 'Filter metrics', state.metrics,
                             (text) => change({metrics: text}), 'metric-filter');
  const xAxis = select('x', axes, state.x, (x) => change({x: x as typeof state.x, from: null, to: null}));
  const logX = check('log x', state.logX, (value) => change({logX: value}));
  const logY = check('log y', state.logY, (value) => change({logY: value}));
  const band = check('min–max', state.band, (value) => change({band: value}), 'Least and most value between two points');
  const reset = button('Reset zoom', () => change({from: null, to: null}), {class: 'quiet', id: 'reset-zoom'});
  const update = () => {
    smooth.value = String(state.smooth);
    weight.textContent = state.smooth.toFixed(2);
    (xAxis.querySelector('select') as HTMLSelectElement).value = state.x;
    for (const [field, value] of [[logX, state.logX], [logY, state.logY], [band, state.band]] as const) {
      (field.querySelector('input') as HTMLInputElement).checked = value;
    }
    if (document.activeElement !== metrics) {
      metrics.value = state.metrics;
    }
    reset.hidden = state.from === null;
  };
  update();
  const root = h('div', {class: 'tools'}, metrics, xAxis,
                 h('label', {class: 'field'}, h('span', {}, 'smoothing'), smooth, weight), logX, logY, band, reset);
  return {root, update};
}

export class ChartGrid {
  readonly root = h('div', {class: 'groups'});
  private readonly cards = new Map<string, Card>();
  private shape = '';
  private readonly stale = new Map<string, number>();  // by run: how often it had news
  private readonly sight = nearness((element, isNear) => {
    const card = this.cards.get(element.dataset.metric ?? '');
    if (card !== undefined) {
      card.isNear = isNear;
      this.refresh(card);
    }
  });

  /** @param runs  ids of the runs that are shown */
  constructor(private readonly runs: () => string[]) {}

  update(): void {
    const runs = this.runs();
    assignColors(runs);
    this.arrange(this.metricsOf(runs));
    for (const card of this.cards.values()) {
      this.refresh(card);
    }
  }

  news(changed: Set<string>): void {
    for (const id of changed) {
      this.stale.set(id, (this.stale.get(id) ?? 0) + 1);
    }
    this.update();
  }

  close(): void {
    this.sight.disconnect();
    for (const card of this.cards.values()) {
      card.abort?.abort();
      card.chart.close();
    }
    this.cards.clear();
  }

  private metricsOf(runs: string[]): string[] {
    const names = new Set<string>();
    for (const id of runs) {
      Object.keys(store.byId.get(id)?.metrics ?? {}).forEach((name) => names.add(name));
    }
    const regex = regexOf(state.metrics) ?? /(?:)/;
    return [...names].filter((name) => regex.test(name) && !/(^|\/)confusion\/[^/]+\/[^/]+$/.test(name))
        .sort((a, b) => orderOf(groupOf(a)).localeCompare(orderOf(groupOf(b))) || a.localeCompare(b));
  }

  private arrange(metrics: string[]): void {
    const shape = metrics.join('\n');
    if (shape === this.shape && this.root.childElementCount > 0) {
      return;
    }
    this.shape = shape;
    for (const [name, card] of this.cards) {
      if (!metrics.includes(name)) {
        this.sight.unobserve(card.chart.root);
        card.abort?.abort();
        card.chart.close();
        this.cards.delete(name);
      }
    }
    const groups = new Map<string, HTMLElement>();
    const closed = new Set([...this.root.querySelectorAll<HTMLDetailsElement>('details.group:not([open])')].map((one) => one.dataset.group));
    for (const name of metrics) {
      const group = groupOf(name);
      let grid = groups.get(group);
      if (grid === undefined) {
        groups.set(group, grid = h('div', {class: 'grid'}));
      }
      grid.append(this.cardOf(name).chart.root);
    }
    const sections = [...groups].map(([name, grid]) =>
        h('details', {class: 'group', open: !closed.has(name), 'data-group': name},
          h('summary', {}, name, ' ', h('span', {class: 'muted'}, grid.childElementCount)), grid));
    this.root.replaceChildren(...(sections.length > 0 ? sections : [
      h('p', {class: 'empty'}, state.metrics === '' ? 'These runs have recorded no metrics yet.' : 'No metric matches the filter.'),
    ]));
  }

  private cardOf(metric: string): Card {
    let card = this.cards.get(metric);
    if (card === undefined) {
      const better = store.runs.map((run) => run.metrics[metric]?.higher_is_better).find((one) => one !== undefined && one !== null);
      card = {chart: new Chart(metric, better ?? null), isNear: false, wanted: '', asked: '', abort: null};
      card.chart.root.classList.add('loading');
      this.cards.set(metric, card);
      this.sight.observe(card.chart.root);
    }
    return card;
  }

  private refresh(card: Card): void {
    const runs = this.runs().filter((id) => card.chart.metric in (store.byId.get(id)?.metrics ?? {}));
    const points = runs.length > 40 ? 200 : runs.length > 10 ? 400 : 800;
    const {x, smooth, from, to} = state;
    const look = document.documentElement.dataset.theme;
    const query = {runs, metrics: [card.chart.metric], x, smooth, points, from, to};
    card.wanted = JSON.stringify([query, state.logX, state.logY, state.band, state.baseline, look,
                                  runs.map((id) => this.stale.get(id) ?? 0)]);
    if (!card.isNear || card.wanted === card.asked) {
      return;
    }
    card.asked = card.wanted;
    card.abort?.abort();
    const abort = card.abort = new AbortController();
    const inOrder = (found: Series[]) => runs.map((id) => found.find((one) => one.run === id))
        .filter((one): one is Series => one !== undefined);
    api.series(query, abort.signal)
        .then((found) => abort.signal.aborted || card.chart.show(inOrder(found)))
        .catch((error: Error) => abort.signal.aborted || card.chart.fail(error.message));
  }
}
