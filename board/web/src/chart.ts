// One metric of some runs: a plot with a legend that holds values.

import uPlot from 'uplot';
import {finite, type Num, type Series} from './api';
import {colorOf, dashOf, theme, withAlpha} from './colors';
import {download, h, perFrame} from './dom';
import {csvField, difference, duration, number} from './format';
import {change, placeOf, state} from './state';
import {store} from './store';
import {svgOf} from './svg_chart';

/** A curve as it is drawn. */
export interface Line {
  id: string;
  name: string;
  color: string;
  dash: number[];
  x: number[];
  y: (number | null)[];
  low: (number | null)[];
  high: (number | null)[];
  isBaseline: boolean;
  why?: string;
}

const mostBands = 12;

const drawable = (value: Num, isLog: boolean) => {
  const y = finite(value);
  return y === null || (isLog && y <= 0) ? null : y;
};

function lineOf(series: Series): Line {
  const keep = series.x.map((_, i) => i).filter((i) => !state.logX || series.x[i] > 0);
  const values = (from: Num[]) => keep.map((i) => drawable(from[i], state.logY));
  return {
    id: series.run,
    name: store.byId.get(series.run)?.name ?? series.run,
    color: colorOf(series.run),
    dash: dashOf(series.run),
    x: keep.map((i) => series.x[i]),
    y: values(series.y),
    low: values(series.low ?? []),
    high: values(series.high ?? []),
    isBaseline: series.run === state.baseline,
    why: series.why,
  };
}

export function axisText(value: number): string {
  return state.x === 'time' ? duration(value) : number(value);
}

/** Lines beside each other on one x axis, as uPlot wants them. */
function aligned(lines: Line[], hasBands: boolean): uPlot.AlignedData {
  const tables = lines.map((line) => (hasBands ? [line.x, line.y, line.high, line.low] : [line.x, line.y]));
  return tables.length === 0 ? [[]] : uPlot.join(tables as uPlot.AlignedData[]);
}

/** The value at x, or the last one before it. */
function valueAt(line: Line, x: number | null): number | null {
  if (line.x.length === 0) {
    return null;
  }
  let i = line.x.length - 1;
  if (x !== null) {
    while (i > 0 && line.x[i] > x) {
      --i;
    }
    if (line.x[i] > x) {
      return null;
    }
  }
  while (i >= 0 && line.y[i] === null) {
    --i;
  }
  return i < 0 ? null : line.y[i];
}

export class Chart {
  readonly root: HTMLElement;
  private readonly plotHost = h('div', {class: 'plot'});
  private readonly legend = h('div', {class: 'legend'});
  private readonly note = h('p', {class: 'note', hidden: true});
  private readonly at = h('span', {class: 'at'});
  private plot: uPlot | null = null;
  private lines: Line[] = [];
  private cells: {line: Line, value: HTMLElement, change: HTMLElement}[] = [];
  private shape = '';
  private readonly redraw = perFrame(() => this.resize());
  private readonly sizes = new ResizeObserver(this.redraw);

  constructor(readonly metric: string, private readonly better: boolean | null) {
    const menu = h('details', {class: 'menu'},
                   h('summary', {'aria-label': `Actions of ${metric}`, title: 'Actions'}, '⋯'),
                   h('div', {class: 'popup'},
                     h('button', {type: 'button', onclick: () => this.exportSvg()}, 'Save as SVG'),
                     h('button', {type: 'button', onclick: () => this.exportCsv()}, 'Save as CSV')));
    const wide = h('button', {
      type: 'button', class: 'quiet', title: 'Larger or smaller', 'aria-label': `Larger: ${metric}`,
      onclick: () => {
        this.root.classList.toggle('wide');
        this.resize();
      },
    }, '⤢');
    this.root = h('article', {class: 'chart', 'data-metric': metric},
                  h('header', {}, h('h3', {title: metric}, metric), this.at, wide, menu),
                  this.plotHost, this.note, this.legend);
    this.sizes.observe(this.plotHost);
  }

  show(series: Series[]): void {
    this.lines = series.map(lineOf);
    const hasData = this.lines.some((line) => line.x.length > 0);
    const why = this.lines.find((line) => line.why)?.why;
    this.note.hidden = hasData && why === undefined;
    this.note.textContent = hasData ? (why ?? '') : (why ?? 'no values yet');
    this.plotHost.hidden = !hasData;
    this.root.classList.remove('loading');
    this.showLegend();
    if (hasData) {
      this.draw();
    }
  }

  fail(text: string): void {
    this.root.classList.remove('loading');
    this.note.hidden = false;
    this.note.textContent = text;
  }

  close(): void {
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private hasBands(): boolean {
    return state.band && this.lines.length <= mostBands;
  }

  private draw(): void {
    const data = aligned(this.lines, this.hasBands());
    const shape = JSON.stringify([
      this.lines.map((line) => [line.id, line.color, line.dash, line.isBaseline]), this.hasBands(), state.logX, state.logY,
      state.x, state.smooth > 0, theme('text'),
    ]);
    if (this.plot !== null && shape === this.shape) {
      this.plot.setData(data);
      this.applyZoom();
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plotHost.replaceChildren();
    this.plot = new uPlot(this.options(), data, this.plotHost);
    this.applyZoom();
  }

  private width(): number {
    return Math.max(this.plotHost.clientWidth, 200);
  }

  private height(): number {
    return this.root.classList.contains('wide') ? 380 : 210;
  }

  private resize(): void {
    const [width, height] = [this.width(), this.height()];
    if (this.plot !== null && (this.plot.width !== width || this.plot.height !== height)) {
      this.plot.setSize({width, height});
    }
  }

  private applyZoom(): void {
    if (this.plot !== null && state.from !== null && state.to !== null) {
      this.plot.setScale('x', {min: state.from, max: state.to});
    }
  }

  private options(): uPlot.Options {
    const [muted, line] = [theme('muted'), theme('line')];
    const axis = {
      stroke: muted, font: '11px system-ui, sans-serif', grid: {stroke: line, width: 1}, ticks: {stroke: line, width: 1, size: 4},
    };
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const one of this.lines) {
      const points = one.y.reduce((sum: number, y) => sum + (y === null ? 0 : 1), 0);
      series.push({
        stroke: one.color, width: one.isBaseline ? 2.6 : 1.6, dash: one.dash,
        points: {show: points <= 40, size: 5, fill: one.color, stroke: one.color},
      });
      if (this.hasBands()) {
        // Where each point is one value there is no band: the value itself is shown.
        const isRaw = one.low.every((low, i) => low === one.high[i]);
        bands.push({series: [series.length, series.length + 1], fill: withAlpha(one.color, 0.14)});
        series.push({stroke: isRaw && state.smooth > 0 ? withAlpha(one.color, 0.35) : 'transparent', width: 1, points: {show: false}},
                    {stroke: 'transparent', width: 0, points: {show: false}});
      }
    }
    return {
      width: this.width(), height: this.height(), series, bands,
      legend: {show: false},
      padding: [8, 20, 0, 0],
      scales: {x: {time: false, distr: state.logX ? 3 : 1}, y: {distr: state.logY ? 3 : 1}},
      axes: [
        {...axis, size: 26, gap: 3, space: 70, values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : axisText(tick)))},
        {...axis, size: 56, gap: 4, values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : number(tick)))},
      ],
      cursor: {
        sync: {key: 'board', setSeries: false, scales: ['x', null]}, y: false,
        drag: {x: true, y: false, setScale: false, dist: 6},
        points: {size: 6},
        bind: {
          dblclick: () => () => {
            change({from: null, to: null});
            return null;
          },
        },
      },
      hooks: {
        setCursor: [(plot) => this.showValues(plot.cursor.left === undefined || plot.cursor.left < 0 || plot.cursor.idx === null ||
                                              plot.cursor.idx === undefined ? null : plot.data[0][plot.cursor.idx])],
        setSelect: [(plot) => this.zoom(plot)],
      },
    };
  }

  private zoom(plot: uPlot): void {
    const {left, width} = plot.select;
    if (width < 6) {
      return;
    }
    const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
    change({from: Number(from.toPrecision(8)), to: Number(to.toPrecision(8))});
  }

  private showLegend(): void {
    this.cells = [];
    const rows = this.lines.map((line) => {
      const value = h('span', {class: 'num'});
      const change = h('span', {class: 'num change'});
      this.cells.push({line, value, change});
      const swatch = h('i', {class: 'swatch', style: {borderTopColor: line.color, borderTopStyle: line.dash.length > 0 ? 'dashed' : 'solid'}});
      const address = placeOf({page: 'run', run: line.id, tab: 'metrics'});
      return h('div', {class: line.isBaseline ? 'row baseline' : 'row'}, swatch,
               h('a', {class: 'name', title: line.id, href: address}, line.name), value, change);
    });
    this.legend.replaceChildren(...rows);
    this.showValues(null);
  }

  private showValues(x: number | null): void {
    this.at.textContent = x === null ? '' : axisText(x);
    const baseline = this.lines.find((line) => line.isBaseline);
    const base = baseline === undefined ? null : valueAt(baseline, x);
    for (const {line, value, change} of this.cells) {
      const y = valueAt(line, x);
      value.textContent = number(y);
      const diff = line.isBaseline ? null : difference(y, base);
      change.textContent = diff?.text ?? '';
      change.className = `num change ${verdict(diff?.change, this.better)}`;
    }
  }

  private exportSvg(): void {
    const shown = {metric: this.metric, lines: this.lines, hasBands: this.hasBands()};
    download(`${this.metric}.svg`, 'image/svg+xml', svgOf(shown));
  }

  private exportCsv(): void {
    download(`${this.metric}.csv`, 'text/csv', csvOf(this.metric, this.lines));
  }
}

function csvOf(metric: string, lines: Line[]): string {
  const rows = [`run,metric,${state.x},value,least,most`];
  for (const line of lines) {
    line.x.forEach((x, i) => rows.push(
        [line.id, metric, x, line.y[i], line.low[i] ?? null, line.high[i] ?? null].map(csvField).join(',')));
  }
  return rows.join('\n') + '\n';
}

/** Whether a change is for the better: a class of the style sheet. */
export function verdict(change: number | undefined, better: boolean | null | undefined): string {
  if (change === undefined || change === 0 || better === null || better === undefined) {
    return '';
  }
  return (change > 0) === better ? 'better' : 'worse';
}
