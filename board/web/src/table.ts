// Tables that runs logged.

import type {Table} from './api';
import {heat, isDark} from './colors';
import {h, s} from './dom';
import {number} from './format';

const mostRows = 500;

function isNumeric(table: Table, column: number): boolean {
  return table.rows.length > 0 && table.rows.every((row) => row[column] === undefined || row[column] === '' || /^[-−+\d.,\u2009 %e]+$/i.test(row[column]));
}

export function tableOf(table: Table): HTMLElement {
  const kinds = table.columns.map((_, column) => (isNumeric(table, column) ? 'num' : ''));
  const rows = table.rows.slice(0, mostRows).map((row) => h('tr', {}, ...row.map((cell, i) => h('td', {class: kinds[i]}, cell))));
  return h('div', {class: 'table-box'},
           h('table', {class: 'table'}, h('thead', {}, h('tr', {}, ...table.columns.map((name, i) => h('th', {class: kinds[i]}, name)))),
             h('tbody', {}, ...rows)),
           table.rows.length > mostRows && h('p', {class: 'note'}, `The first ${mostRows} of ${table.rows.length} rows.`));
}

/** Counts of classes by classes. */
export interface Confusion {
  labels: string[];
  counts: number[][];  // by label, then by guess
}

/** A table whose columns after the first are its rows' names is taken for a confusion matrix. */
export function confusionOf(table: Table): Confusion | null {
  const labels = table.columns.slice(1);
  const isSquare = labels.length > 1 && table.rows.length === labels.length &&
      table.rows.every((row, i) => row[0] === labels[i] && row.length === labels.length + 1);
  const counts = table.rows.map((row) => row.slice(1).map(Number));
  return isSquare && counts.flat().every(Number.isFinite) ? {labels, counts} : null;
}

/** Shares of each row as a heat map, with counts. */
export function confusionTable({labels, counts}: Confusion): HTMLElement {
  const sums = counts.map((row) => row.reduce((sum, value) => sum + value, 0));
  const all = sums.reduce((sum, value) => sum + value, 0);
  const right = counts.reduce((sum, row, i) => sum + row[i], 0);
  const cells = (row: number[], i: number) => row.map((value, j) => {
    const share = sums[i] > 0 ? value / sums[i] : 0;
    const isLight = isDark() ? share > 0.35 : share < 0.35;
    return h('td', {class: i === j ? 'num right' : 'num', title: `${labels[i]} taken for ${labels[j]}: ${value} of ${sums[i]}`,
                    style: {background: heat(share), color: isLight ? '#14171a' : '#f5f7f9'}}, value === 0 ? '' : number(value));
  });
  return h('div', {class: 'confusion'},
           h('table', {}, h('caption', {}, 'guess →'),
             h('thead', {}, h('tr', {}, h('th', {class: 'corner'}, 'label ↓'), ...labels.map((label) => h('th', {}, label)), h('th', {}, 'right'))),
             h('tbody', {}, ...counts.map((row, i) => h('tr', {}, h('th', {}, labels[i]), ...cells(row, i),
                 h('td', {class: 'num share'}, sums[i] > 0 ? `${(100 * row[i] / sums[i]).toFixed(1)} %` : '–'))))),
           h('p', {class: 'muted'}, all > 0 ? `${number(right)} of ${number(all)} right, ${(100 * right / all).toFixed(1)} %` : ''));
}

/** The columns of a ROC or a precision-recall curve, when the table has one of them. */
export function curveColumns(table: Table): {x: number, y: number} | null {
  const find = (...names: string[]) => table.columns.findIndex((column) => names.includes(column.toLowerCase()));
  const pairs = [[find('fpr', 'false_positive_rate'), find('tpr', 'true_positive_rate')], [find('recall'), find('precision')]];
  const [x, y] = pairs.find(([a, b]) => a >= 0 && b >= 0) ?? [-1, -1];
  return x < 0 ? null : {x, y};
}

/** A curve in the unit square. */
export function unitCurve(table: Table, {x, y}: {x: number, y: number}): Element {
  const points = table.rows.map((row) => [Number(row[x]), Number(row[y])]).filter((point) => point.every(Number.isFinite));
  const at = ([a, b]: number[]) => `${(36 + 220 * a).toFixed(1)} ${(232 - 220 * b).toFixed(1)}`;
  return s('svg', {viewBox: '0 0 270 270', class: 'unit-curve', role: 'img', 'aria-label': `${table.columns[y]} over ${table.columns[x]}`},
           s('rect', {x: 36, y: 12, width: 220, height: 220, class: 'frame'}),
           s('path', {d: `M${points.map(at).join('L')}`, class: 'curve'}),
           s('text', {x: 146, y: 258, 'text-anchor': 'middle'}, table.columns[x]),
           s('text', {x: 14, y: 122, 'text-anchor': 'middle', transform: 'rotate(-90 14 122)'}, table.columns[y]),
           s('text', {x: 36, y: 246, 'text-anchor': 'middle'}, '0'), s('text', {x: 256, y: 246, 'text-anchor': 'middle'}, '1'));
}
