// Pictures, histograms, texts, tables and confusion matrices, over the updates.

import {api, finite, type Histogram, type Media, type RunDetail, type Table} from '../api';
import {heat} from '../colors';
import {h, nearness, settled} from '../dom';
import {count, number} from '../format';
import type {Tab} from '../pages/run';
import {confusionOf, confusionTable, curveColumns, tableOf, unitCurve, type Confusion} from '../table';

const mostHistograms = 60;  // updates in one picture
const mostConfusion = 400;  // numbers of one matrix

/** A slider over updates, which shows the newest at first. */
function stepSlider(label: string, steps: number[], show: (step: number) => void): HTMLElement {
  const slider = h('input', {type: 'range', min: '0', max: String(steps.length - 1), step: '1', 'aria-label': `Update of ${label}`});
  slider.value = String(steps.length - 1);
  const text = h('output', {class: 'num'});
  const tell = () => {
    const step = steps[Number(slider.value)];
    text.textContent = `update ${count(step)}`;
    slider.setAttribute('aria-valuetext', text.textContent);
  };
  const ask = settled(60, () => show(steps[Number(slider.value)]));
  slider.addEventListener('input', () => {
    tell();
    ask();
  });
  tell();
  return h('label', {class: 'slider'}, steps.length > 1 ? slider : '', text);
}

const sorted = (steps: Iterable<number>) => [...new Set(steps)].sort((a, b) => a - b);

function card(title: string, ...children: (Node | string)[]): HTMLElement {
  return h('article', {class: 'card', 'data-name': title}, h('h3', {title}, title), ...children);
}

function failure(error: Error): HTMLElement {
  return h('p', {class: 'note'}, error.message);
}

export class MediaTab implements Tab {
  readonly root = h('div', {class: 'media'});
  private known = '';

  show(run: RunDetail): void {
    const confusion = confusionMetrics(run.metrics);
    const shape = JSON.stringify([run.media.length, confusion.size]);
    if (shape === this.known) {
      return;
    }
    this.known = shape;
    const sections = [
      this.section('Images', 'image', run, (name, steps) => imageCard(run.id, name, steps), true),
      confusionSection(run, confusion),
      this.section('Tables', 'table', run, (name, steps) => tableCard(run.id, name, steps)),
      this.section('Texts', 'text', run, (name, steps) => textCard(run.id, name, steps)),
      this.section('Histograms', 'histogram', run, (name, steps) => histogramCard(run.id, name, steps)),
    ].filter((one): one is HTMLElement => one !== null);
    this.root.replaceChildren(...(sections.length > 0 ? sections : [
      h('p', {class: 'empty'}, 'This run logged no pictures, histograms, texts or tables. ImageVisualizer and SummaryTensorListener do.'),
    ]));
  }

  private section(title: string, kind: string, run: RunDetail, make: (name: string, steps: number[]) => HTMLElement, isGrid = false): HTMLElement | null {
    const names = new Map<string, Media[]>();
    for (const one of run.media.filter((media) => media.kind === kind)) {
      names.set(one.name, [...names.get(one.name) ?? [], one]);
    }
    if (names.size === 0) {
      return null;
    }
    const cards = [...names].sort(([a], [b]) => a.localeCompare(b, undefined, {numeric: true}))
        .map(([name, media]) => whenSeen(() => make(name, sorted(media.map((one) => one.step))), name));
    return h('section', {}, h('h2', {}, title), h('div', {class: isGrid ? 'cards small' : 'cards'}, ...cards));
  }
}

/** A place that becomes a card once it is in sight. */
function whenSeen(make: () => HTMLElement, name: string): HTMLElement {
  const place = h('article', {class: 'card waiting', 'data-name': name}, h('h3', {}, name));
  const sight = nearness((_, isNear) => {
    if (isNear) {
      sight.disconnect();
      place.replaceWith(make());
    }
  });
  sight.observe(place);
  return place;
}

function imageCard(run: string, name: string, steps: number[]): HTMLElement {
  const picture = h('img', {alt: name, decoding: 'async'});
  const show = (step: number) => {
    picture.src = api.mediaAddress(run, 'image', name, step);
  };
  show(steps[steps.length - 1]);
  return card(name, picture, stepSlider(name, steps, show));
}

/** A card whose content is asked for by update. */
function askingCard<Answer>(run: string, kind: string, name: string, steps: number[], view: (answer: Answer) => (Node | string)[]): HTMLElement {
  const content = h('div');
  let wanted = 0;
  const show = (step: number) => {
    wanted = step;
    api.media<Answer>(run, kind, name, step).then((answer) => wanted === step && content.replaceChildren(...view(answer)))
        .catch((error: Error) => content.replaceChildren(failure(error)));
  };
  show(steps[steps.length - 1]);
  return card(name, content, stepSlider(name, steps, show));
}

function textCard(run: string, name: string, steps: number[]): HTMLElement {
  return askingCard<{text: string}>(run, 'text', name, steps, ({text}) => [h('pre', {class: 'text'}, text)]);
}

function tableCard(run: string, name: string, steps: number[]): HTMLElement {
  return askingCard<Table>(run, 'table', name, steps, (table) => {
    const confusion = confusionOf(table);
    if (confusion !== null) {
      return [confusionTable(confusion)];
    }
    const curve = curveColumns(table);
    return curve === null ? [tableOf(table)] : [unitCurve(table, curve), h('details', {}, h('summary', {}, 'Values'), tableOf(table))];
  });
}

// Histograms over time: a column an update, a row a range of values, darker where more values are.

function histogramCard(run: string, name: string, steps: number[]): HTMLElement {
  const every = Math.max(1, Math.ceil(steps.length / mostHistograms));
  const kept = steps.filter((_, i) => (steps.length - 1 - i) % every === 0);
  const content = h('div', {class: 'heat'}, h('p', {class: 'note'}, 'loading'));
  Promise.all(kept.map((step) => api.media<Histogram>(run, 'histogram', name, step)))
      .then((histograms) => content.replaceChildren(...heatMap(kept, histograms)))
      .catch((error: Error) => content.replaceChildren(failure(error)));
  return card(name, content);
}

const rows = 72;

/** Counts of a histogram on equal ranges: each gets its share of the buckets that it overlaps. */
function resampled(histogram: Histogram, least: number, most: number): number[] {
  const result = new Array<number>(rows).fill(0);
  const width = (most - least) / rows;
  histogram.counts.forEach((value, i) => {
    const [from, to] = [(histogram.edges[i] - least) / width, ((histogram.edges[i + 1] ?? histogram.edges[i]) - least) / width];
    const last = Math.min(rows - 1, Math.floor(to));
    for (let row = Math.min(rows - 1, Math.max(0, Math.floor(from))); row <= last; ++row) {
      const overlap = Math.min(to, row + 1) - Math.max(from, row);
      result[row] += to > from ? value * Math.max(0, overlap) / (to - from) : value;
    }
  });
  return result;
}

function heatMap(steps: number[], histograms: Histogram[]): HTMLElement[] {
  const edges = histograms.flatMap((one) => one.edges).filter(Number.isFinite);
  let [least, most] = [Infinity, -Infinity];
  for (const edge of edges) {
    least = Math.min(least, edge);
    most = Math.max(most, edge);
  }
  if (edges.length === 0) {
    return [h('p', {class: 'note'}, 'no finite values')];
  }
  if (!(most > least)) {
    [least, most] = [least - 0.5, most + 0.5];
  }
  const columns = histograms.map((one) => resampled(one, least, most));
  const canvas = h('canvas', {width: columns.length, height: rows, role: 'img', 'aria-label': `${columns.length} histograms over updates`});
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  columns.forEach((column, x) => {
    const largest = Math.max(...column, 1e-300);
    column.forEach((value, row) => {
      context.fillStyle = heat(value / largest);
      context.fillRect(x, rows - 1 - row, 1, 1);
    });
  });
  const tip = h('p', {class: 'note num'}, `${steps.length} updates`);
  canvas.addEventListener('mousemove', (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(steps.length - 1, Math.floor((event.clientX - box.left) / box.width * steps.length));
    const row = rows - 1 - Math.min(rows - 1, Math.floor((event.clientY - box.top) / box.height * rows));
    const from = least + row * (most - least) / rows;
    const spoilt = histograms[x].not_finite ?? 0;
    tip.textContent = `update ${count(steps[x])}: about ${number(Math.round(columns[x][row]))} values near ${number(from)}` +
        (spoilt > 0 ? `, ${spoilt} not finite` : '');
  });
  return [
    h('div', {class: 'heat-plot'}, h('span', {class: 'num top'}, number(most)), h('span', {class: 'num bottom'}, number(least)), canvas),
    h('div', {class: 'heat-axis num'}, h('span', {}, count(steps[0])), h('span', {}, count(steps[steps.length - 1]))), tip,
  ];
}

// Confusion matrices, which a metric logs as `<scope>/confusion/<label>/<guess>`.

function confusionMetrics(metrics: string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const metric of metrics) {
    const parts = /^(.*?)\/?confusion\/[^/]+\/[^/]+$/.exec(metric);
    if (parts !== null) {
      found.set(parts[1], [...found.get(parts[1]) ?? [], metric]);
    }
  }
  return found;
}

function confusionSection(run: RunDetail, groups: Map<string, string[]>): HTMLElement | null {
  if (groups.size === 0) {
    return null;
  }
  const cards = [...groups].map(([scope, metrics]) => whenSeen(() => confusionCard(run, scope, metrics), scope || 'confusion'));
  return h('section', {}, h('h2', {}, 'Confusion matrices'), h('div', {class: 'cards'}, ...cards));
}

function confusionCard(run: RunDetail, scope: string, metrics: string[]): HTMLElement {
  const content = h('div', {}, h('p', {class: 'note'}, 'loading'));
  const result = card(scope || 'confusion', content);
  const load = async () => {
    if (metrics.length > mostConfusion) {
      throw new Error(`${metrics.length} numbers are too many for a picture`);
    }
    const series = await api.series({runs: [run.id], metrics, x: 'update', smooth: 0, points: 2000, from: null, to: null});
    const steps = sorted(series.flatMap((one) => one.x));
    const show = (step: number) => content.replaceChildren(confusionTable(matrixAt(series, step)));
    show(steps[steps.length - 1]);
    result.append(stepSlider(scope, steps, show));
  };
  load().catch((error: Error) => content.replaceChildren(failure(error)));
  return result;
}

function matrixAt(series: {metric: string, x: number[], y: unknown[]}[], step: number): Confusion {
  const natural = (a: string, b: string) => a.localeCompare(b, undefined, {numeric: true});
  const ends = series.map((one) => one.metric.split('/').slice(-2));
  const labels = [...new Set(ends.flat())].sort(natural);
  const counts = labels.map(() => labels.map(() => 0));
  series.forEach((one, i) => {
    const at = one.x.indexOf(step);
    const [label, guess] = ends[i];
    counts[labels.indexOf(label)][labels.indexOf(guess)] = at < 0 ? 0 : finite(one.y[at] as number) ?? 0;
  });
  return {labels, counts};
}
