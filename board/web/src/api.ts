// What the server says, and the same from an exported page.

import {localSeries} from './local_series';

export type Num = number | 'nan' | 'inf' | '-inf';

export interface MetricSummary {
  last: Num;
  best?: Num | null;
  best_step?: number | null;
  higher_is_better?: boolean | null;
}

export interface Run {
  id: string;
  name: string;
  status: string;
  step: number;
  updates: number | null;
  sessions: number;
  begin: number;
  end: number;
  reason?: string;
  config: Record<string, string>;
  metrics: Record<string, MetricSummary>;
  alerts: number;
  saves: number;
}

export interface Alert {
  run?: string;
  step: number;
  time: number;
  level: string;
  text: string;
}

export interface Media {
  step: number;
  time: number;
  kind: string;
  name: string;
}

export interface RunDetail {
  id: string;
  name: string;
  status: string;
  step: number;
  updates: number | null;
  sessions: number;
  begin: number;
  end: number;
  reason: string;
  config: Record<string, string>;
  config_text: string;
  process: number;
  host: string;
  version: string;
  metrics: string[];
  saves: {step: number, time: number, path: string, verified?: string}[];
  validations: {step: number, time: number, label: string}[];
  alerts: Alert[];
  media: Media[];
  steps: string[];
  tables: string[];
  damaged_lines: number;
}

export interface Series {
  run: string;
  metric: string;
  x: number[];
  y: Num[];
  low: Num[];
  high: Num[];
  count: number;
  why?: string;
}

export type Axis = 'update' | 'epoch' | 'samples' | 'tokens' | 'time';

export interface SeriesQuery {
  runs: string[];
  metrics: string[];
  x: Axis;
  smooth: number;
  points: number;
  from: number | null;
  to: number | null;
}

export interface Diff {
  config: {key: string, a: string | null, b: string | null}[];
  results: {metric: string, a: Num | null, b: Num | null}[];
  first_difference: {metric: string, step: number} | null;
}

export interface Table {
  columns: string[];
  rows: string[][];
}

export interface Histogram {
  edges: number[];
  counts: number[];
  least: Num;
  most: Num;
  count?: number;
  not_finite?: number;
}

type Answers = Record<string, unknown>;

function readExport(): Answers | null {
  const element = document.getElementById('export');
  return element === null ? null : JSON.parse(element.textContent ?? '{}') as Answers;
}

const answers = readExport();

/** Whether this page is a file that holds its answers. */
export const isExport = answers !== null;

export function query(path: string, values: Record<string, string | number | string[]>): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      parts.push(`${key}=${encodeURIComponent(one)}`);
    }
  }
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}

function embedded(path: string): unknown {
  const answer = answers?.[path];
  if (answer === undefined) {
    throw new Error('the exported page does not hold this');
  }
  return answer;
}

async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(path, {signal});
  if (!response.ok) {
    let text = `${response.status} ${response.statusText}`;
    try {
      text = (await response.json() as {error: string}).error;
    } catch {
      // not the server's own message
    }
    throw new Error(text);
  }
  return response;
}

async function get<Answer>(path: string, signal?: AbortSignal): Promise<Answer> {
  return (answers !== null ? embedded(path) : await (await ask(path, signal)).json()) as Answer;
}

async function getText(path: string): Promise<string> {
  return answers !== null ? String(embedded(path)) : (await ask(path)).text();
}

export const api = {
  runs: () => get<{root: string, version: string, runs: Run[]}>('/api/runs'),

  run: (id: string) => get<RunDetail>(query('/api/run', {id})),

  async series(q: SeriesQuery, signal?: AbortSignal): Promise<Series[]> {
    const parts = answers !== null ? [exportedSeries(q)] :
        await Promise.all(inParts(q.runs).map((runs) => seriesOf({...q, runs}, signal)));
    return parts.flat();
  },

  async diff(a: string, b: string): Promise<Diff> {
    return answers === null ? get<Diff>(query('/api/diff', {a, b})) : exportedDiff(a, b);
  },

  mediaAddress(run: string, kind: string, name: string, step: number): string {
    const path = query('/api/media', {run, kind, name, step});
    if (answers === null) {
      return path;
    }
    const data = String(answers[path] ?? '');
    return data.startsWith('data:image/png;base64,') ? data : '';
  },

  media: <Answer>(run: string, kind: string, name: string, step: number) =>
      get<Answer>(query('/api/media', {run, kind, name, step})),

  step: (run: string, key: string) => get<Record<string, unknown>>(query('/api/step', {run, key})),

  stepProgram: (run: string, key: string) => getText(query('/api/step', {run, key, part: 'program'})),

  stepTimeline: (run: string, key: string) =>
      get<{traceEvents: unknown[], otherData?: Record<string, unknown>}>(
          query('/api/step', {run, key, part: 'timeline'})),

  table: (run: string, name: string) => get<Table>(query('/api/table', {run, name})),

  async log(run: string, q: string, last: number): Promise<{lines: string[], count: number}> {
    if (answers === null) {
      return get(query('/api/log', {run, q, last}));
    }
    const {lines} = await get<{lines: string[]}>(query('/api/log', {run}));
    const found = lines.filter((line) => line.toLowerCase().includes(q.toLowerCase()));
    return {lines: found.slice(-last), count: found.length};
  },

  alerts: () => get<{alerts: Alert[]}>('/api/alerts'),
};

const longestRuns = 4000;  // bytes of ids in an address, of which the server takes 8000

function inParts(runs: string[]): string[][] {
  const parts: string[][] = [[]];
  let length = 0;
  for (const run of runs) {
    length += encodeURIComponent(run).length + 5;
    if (length > longestRuns && parts[parts.length - 1].length > 0) {
      parts.push([]);
      length = 0;
    }
    parts[parts.length - 1].push(run);
  }
  return parts;
}

async function seriesOf(q: SeriesQuery, signal?: AbortSignal): Promise<Series[]> {
  const values: Record<string, string | number | string[]> =
      {run: q.runs, metric: q.metrics, x: q.x, smooth: q.smooth, points: q.points};
  if (q.from !== null && q.to !== null) {
    values.from = q.from;
    values.to = q.to;
  }
  return (await get<{series: Series[]}>(query('/api/series', values), signal)).series;
}

function exportedSeries(q: SeriesQuery): Series[] {
  const found: Series[] = [];
  for (const run of q.runs) {
    for (const metric of q.metrics) {
      const series = answers?.[query('/api/series', {run, metric, x: q.x})] as Series | undefined;
      found.push(series === undefined ?
          {run, metric, x: [], y: [], low: [], high: [], count: 0, why: `the run has no axis “${q.x}”`} : localSeries(series, q));
    }
  }
  return found;
}

async function exportedDiff(a: string, b: string): Promise<Diff> {
  const runs = (await api.runs()).runs;
  const [left, right] = [a, b].map((id) => runs.find((run) => run.id === id));
  const differing = <Value>(of: (run: Run | undefined) => Record<string, Value>) => {
    const [x, y] = [of(left), of(right)];
    return [...new Set([...Object.keys(x), ...Object.keys(y)])].sort()
        .map((key) => ({key, a: x[key] ?? null, b: y[key] ?? null}))
        .filter((row) => JSON.stringify(row.a) !== JSON.stringify(row.b));
  };
  const lasts = (run: Run | undefined) =>
      Object.fromEntries(Object.entries(run?.metrics ?? {}).map(([key, value]) => [key, value.last]));
  return {
    config: differing((run) => run?.config ?? {}),
    results: differing(lasts).map(({key, a: x, b: y}) => ({metric: key, a: x, b: y})),
    first_difference: null,
  };
}

/** A number, or null for one that is not finite. */
export function finite(value: Num | null | undefined): number | null {
  return typeof value === 'number' ? value : null;
}
