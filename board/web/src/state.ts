// What the user looks at. All of it is in the address, so that a link or a reload shows the same.

import type {Axis} from './api';

export interface State {
  page: string;        // runs, curves, alerts, run
  run: string;         // id, of page "run"
  tab: string;         // of page "run"
  filter: string;      // of runs
  group: string;       // key of the config
  sort: string;        // column of the runs' table
  descending: boolean;
  selected: string[];  // runs whose curves are shown
  pinned: string[];
  baseline: string;
  columns: string[];   // of the table; none: a choice by rondo
  metrics: string;     // filter
  x: Axis;
  smooth: number;
  logX: boolean;
  logY: boolean;
  band: boolean;
  from: number | null;  // the part of the x axis that is shown
  to: number | null;
  other: string;        // run to compare the config with
  step: string;         // key of a traced step
}

const initial: State = {
  page: 'runs', run: '', tab: 'metrics', filter: '', group: '', sort: 'begin', descending: true, selected: [],
  pinned: [], baseline: '', columns: [], metrics: '', x: 'update', smooth: 0, logX: false, logY: false, band: true,
  from: null, to: null, other: '', step: '',
};

const pages = ['runs', 'curves', 'alerts', 'run'];

function parse(hash: string): State {
  const [path, search = ''] = hash.replace(/^#\/?/, '').split('?');
  const [page = '', run = ''] = path.split('/');
  const values = new URLSearchParams(search);
  const state: State = {...initial, page: pages.includes(page) ? page : 'runs', run: decoded(run)};
  const target = state as unknown as Record<string, unknown>;
  for (const [key, first] of Object.entries(initial)) {
    const text = values.get(key);
    if (text === null || key === 'page' || key === 'run') {
      continue;
    }
    if (Array.isArray(first)) {
      target[key] = values.getAll(key);
    } else if (typeof first === 'boolean') {
      target[key] = text === '1';
    } else if (typeof first === 'number' || first === null) {
      target[key] = Number.isFinite(Number(text)) ? Number(text) : first;
    } else {
      target[key] = text;
    }
  }
  state.smooth = Math.min(Math.max(state.smooth, 0), 0.999);
  if (!['update', 'epoch', 'samples', 'tokens', 'time'].includes(state.x)) {
    state.x = 'update';
  }
  return state;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a state. */
export function addressOf(state: State): string {
  const values = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    const first = initial[key as keyof State];
    if (key === 'page' || key === 'run' || JSON.stringify(value) === JSON.stringify(first)) {
      continue;
    }
    for (const one of Array.isArray(value) ? value : [value]) {
      values.append(key, typeof one === 'boolean' ? (one ? '1' : '0') : String(one));
    }
  }
  const search = values.toString();
  const path = state.page === 'run' ? `run/${encodeURIComponent(state.run)}` : state.page;
  return `#/${path}${search === '' ? '' : `?${search}`}`;
}

export let state: State = parse(location.hash);

const listeners: (() => void)[] = [];

export function onState(listener: () => void): void {
  listeners.push(listener);
}

/** Changes a part. Another page or tab becomes a place to go back to. */
export function change(part: Partial<State>): void {
  const before = state;
  state = {...state, ...part};
  const isPlace = before.page !== state.page || before.run !== state.run || before.tab !== state.tab;
  history[isPlace ? 'pushState' : 'replaceState'](null, '', addressOf(state));
  listeners.forEach((listener) => listener());
}

/** The address of another place, with what is chosen now. */
export function placeOf(part: Partial<State>): string {
  return addressOf({...state, ...part});
}

const reread = () => {
  state = parse(location.hash);
  listeners.forEach((listener) => listener());
};
addEventListener('popstate', reread);
addEventListener('hashchange', reread);

export function toggled(list: string[], value: string): string[] {
  return list.includes(value) ? list.filter((one) => one !== value) : [...list, value];
}
