// The columns of the table of runs: what can be shown, what is at first, and how it compares.

import {finite, type Run} from './api';
import {duration, moment, number, shortKey} from './format';
import {differingKeys} from './store';

export interface Column {
  id: string;
  title: string;
  hint: string;
  width: number;
  isNumber: boolean;
  /** Of a metric: whether more is better, where it says so. */
  better?: boolean | null;
  /** For sorting. */
  value: (run: Run) => number | string | null;
  text: (run: Run) => string;
}

const mostMetrics = 4;
const mostKeys = 5;

export function seconds(run: Run): number {
  return (run.status === 'running' ? Date.now() / 1000 : run.end) - run.begin;
}

const fixed: Column[] = [
  {id: 'status', title: 'Status', hint: 'running, done, stopped, failed or crashed', width: 92, isNumber: false,
   value: (run) => run.status, text: (run) => run.status},
  {id: 'step', title: 'Updates', hint: 'Updates done, of all', width: 128, isNumber: true,
   value: (run) => run.step, text: (run) => number(run.step)},
];

const tail: Column[] = [
  {id: 'begin', title: 'Started', hint: 'When the first session started', width: 132, isNumber: true,
   value: (run) => run.begin, text: (run) => moment(run.begin)},
  {id: 'time', title: 'Time', hint: 'From the start to the newest line of the record', width: 92, isNumber: true,
   value: seconds, text: (run) => duration(seconds(run))},
  {id: 'alerts', title: 'Alerts', hint: 'How many alerts the run raised', width: 62, isNumber: true,
   value: (run) => run.alerts, text: (run) => (run.alerts > 0 ? String(run.alerts) : '')},
];

/** The best value of a metric that has one, else the last. */
export function result(run: Run, metric: string): number | null {
  const summary = run.metrics[metric];
  return summary === undefined ? null : finite(summary.best) ?? finite(summary.last);
}

function metricColumn(metric: string, runs: Run[]): Column {
  const better = runs.map((run) => run.metrics[metric]?.higher_is_better).find((one) => one !== undefined && one !== null);
  const what = better === undefined ? 'last value' : `best value, ${better ? 'higher' : 'lower'} is better`;
  return {
    id: `metric:${metric}`, title: metric, hint: `${metric}: ${what}`, width: 132, isNumber: true, better: better ?? null,
    value: (run) => result(run, metric),
    text: (run) => (metric in run.metrics ? number(result(run, metric) ?? run.metrics[metric].last) : ''),
  };
}

function configColumn(key: string, keys: string[]): Column {
  const value = (run: Run) => {
    const text = run.config[key];
    return text === undefined || text === '' || Number.isNaN(Number(text)) ? text ?? null : Number(text);
  };
  return {id: `config:${key}`, title: shortKey(key, keys), hint: key, width: 112, isNumber: false, value, text: (run) => run.config[key] ?? ''};
}

/** Metrics of the runs, those first that say which direction is better, that most runs have, and that validations gave. */
export function metricsOf(runs: Run[]): string[] {
  const ranks = new Map<string, number>();
  for (const run of runs) {
    for (const [name, summary] of Object.entries(run.metrics)) {
      const known = typeof summary.higher_is_better === 'boolean' ? 1 : 0;
      ranks.set(name, (ranks.get(name) ?? 0) + 1 + known + (name.includes('/') ? 0.1 : 0));
    }
  }
  return [...ranks.keys()].filter((name) => !/(^|\/)confusion\//.test(name))
      .sort((a, b) => (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0) || a.localeCompare(b));
}

export interface Columns {
  all: Column[];
  shown: Column[];
}

/** \param chosen  ids; none: rondo chooses */
export function columnsOf(runs: Run[], chosen: string[]): Columns {
  const metrics = metricsOf(runs);
  const keys = differingKeys(runs);
  const [metricColumns, configColumns] = [metrics.map((name) => metricColumn(name, runs)), keys.map((key) => configColumn(key, keys))];
  const all = [...fixed, ...metricColumns, ...configColumns, ...tail];
  if (chosen.length > 0) {
    return {all, shown: all.filter((column) => chosen.includes(column.id))};
  }
  const telling = metricColumns.filter((column) => column.better !== null);
  const first = (telling.length > 0 ? telling : metricColumns).slice(0, mostMetrics);
  return {all, shown: [...fixed, ...first, ...configColumns.slice(0, mostKeys), ...tail]};
}

/** Numbers before texts before nothing. */
export function compare(a: number | string | null, b: number | string | null): number {
  const rank = (value: number | string | null) => (value === null ? 2 : typeof value === 'number' ? 0 : 1);
  if (rank(a) !== rank(b) || a === null || b === null) {
    return rank(a) - rank(b);
  }
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
}
