// A chart as an SVG file: drawn again from its lines, with a legend, for papers and slides.

import type {Line} from './chart';
import {axisText} from './chart';
import {s} from './dom';
import {number} from './format';
import {state} from './state';

const width = 760;
const plot = {left: 64, top: 36, right: 744, bottom: 360};

interface Scale {
  ticks: number[];
  at: (value: number) => number;
}

function linearTicks(least: number, most: number): number[] {
  const rough = (most - least) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough) ?? rough;
  const ticks: number[] = [];
  for (let i = Math.ceil(least / step); i * step <= most * (1 + 1e-12); ++i) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(least: number, most: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.ceil(Math.log10(least)); power <= Math.log10(most); ++power) {
    ticks.push(10 ** power);
  }
  return ticks.length >= 2 ? ticks : [least, most];
}

function scaleOf(values: number[], isLog: boolean, from: number, to: number): Scale {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (!(most > least)) {
    [least, most] = isLog ? [least / 2, least * 2] : [least - 0.5, least + 0.5];
  }
  const place = isLog ? Math.log : (value: number) => value;
  const span = place(most) - place(least);
  return {
    ticks: isLog ? logTicks(least, most) : linearTicks(least, most),
    at: (value) => from + (place(value) - place(least)) / span * (to - from),
  };
}

const rounded = (value: number) => value.toFixed(1);

function pathOf(line: Line, values: (number | null)[], x: Scale, y: Scale): string {
  let path = '';
  let isDown = false;
  line.x.forEach((at, i) => {
    const value = values[i];
    if (value !== null && value !== undefined) {
      path += `${isDown ? 'L' : 'M'}${rounded(x.at(at))} ${rounded(y.at(value))}`;
    }
    isDown = value !== null && value !== undefined;
  });
  return path;
}

function bandOf(line: Line, x: Scale, y: Scale): string {
  const kept = line.x.map((_, i) => i).filter((i) => typeof line.low[i] === 'number' && typeof line.high[i] === 'number');
  const point = (i: number, value: number | null) => `${rounded(x.at(line.x[i]))} ${rounded(y.at(value ?? 0))}`;
  const there = kept.map((i) => point(i, line.high[i]));
  const back = [...kept].reverse().map((i) => point(i, line.low[i]));
  return there.length === 0 ? '' : `M${[...there, ...back].join('L')}Z`;
}

export function svgOf(chart: {metric: string, lines: Line[], hasBands: boolean}): string {
  const isShown = (at: number) => state.from === null || state.to === null || (at >= state.from && at <= state.to);
  const lines = chart.lines.map((line) => {
    const keep = line.x.map((_, i) => i).filter((i) => isShown(line.x[i]));
    const part = (values: (number | null)[]) => keep.map((i) => values[i] ?? null);
    return {...line, x: keep.map((i) => line.x[i]), y: part(line.y), low: part(line.low), high: part(line.high)};
  });
  const numbers = (values: (number | null)[]) => values.filter((value): value is number => value !== null);
  const x = scaleOf(lines.flatMap((line) => line.x), state.logX, plot.left, plot.right);
  const heights = lines.flatMap((line) => (chart.hasBands ? [...line.y, ...line.low, ...line.high] : line.y));
  const y = scaleOf(numbers(heights), state.logY, plot.bottom, plot.top);
  const height = plot.bottom + 44 + 18 * lines.length;
  const picture = s('svg', {
    xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}`, 'font-family': 'system-ui, sans-serif',
    'font-size': 12,
  }, s('rect', {width, height, fill: '#ffffff'}), s('text', {x: plot.left, y: 22, 'font-size': 14, 'font-weight': 600}, chart.metric));
  for (const tick of x.ticks) {
    picture.append(s('line', {x1: rounded(x.at(tick)), x2: rounded(x.at(tick)), y1: plot.top, y2: plot.bottom, stroke: '#e6e6e3'}),
                   s('text', {x: rounded(x.at(tick)), y: plot.bottom + 17, 'text-anchor': 'middle', fill: '#5d6368'}, axisText(tick)));
  }
  for (const tick of y.ticks) {
    picture.append(s('line', {x1: plot.left, x2: plot.right, y1: rounded(y.at(tick)), y2: rounded(y.at(tick)), stroke: '#e6e6e3'}),
                   s('text', {x: plot.left - 7, y: rounded(y.at(tick) + 4), 'text-anchor': 'end', fill: '#5d6368'}, number(tick)));
  }
  picture.append(s('text', {x: plot.right, y: plot.bottom + 32, 'text-anchor': 'end', fill: '#5d6368'}, state.x));
  lines.forEach((line, i) => {
    if (chart.hasBands) {
      picture.append(s('path', {d: bandOf(line, x, y), fill: line.color, 'fill-opacity': 0.14}));
    }
    picture.append(s('path', {
      d: pathOf(line, line.y, x, y), fill: 'none', stroke: line.color, 'stroke-width': line.isBaseline ? 2.6 : 1.6,
      'stroke-dasharray': line.dash.length > 0 ? line.dash.join(' ') : null,
    }));
    const row = plot.bottom + 44 + 18 * i;
    picture.append(s('line', {x1: plot.left, x2: plot.left + 22, y1: row - 4, y2: row - 4, stroke: line.color, 'stroke-width': 2,
                              'stroke-dasharray': line.dash.length > 0 ? line.dash.join(' ') : null}),
                   s('text', {x: plot.left + 30, y: row}, line.name));
  });
  return new XMLSerializer().serializeToString(picture);
}
