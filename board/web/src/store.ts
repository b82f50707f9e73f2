// The runs, and news of them from the server.

import {api, isExport, type Run} from './api';
import {regexOf} from './dom';
import {state} from './state';

export const store = {
  root: '',
  version: '',
  runs: [] as Run[],
  byId: new Map<string, Run>(),
  link: (isExport ? 'export' : 'connecting') as 'export' | 'connecting' | 'live' | 'offline',
  error: '',
};

type News = (changed: Set<string>) => void;

const listeners: News[] = [];

/** Tells of changed runs, after the list of runs is up to date. */
export function onNews(listener: News): void {
  listeners.push(listener);
}

export async function loadRuns(): Promise<void> {
  try {
    const answer = await api.runs();
    store.root = answer.root;
    store.version = answer.version;
    store.runs = answer.runs;
    store.byId = new Map(answer.runs.map((run) => [run.id, run]));
    store.error = '';
  } catch (error) {
    store.error = (error as Error).message;
  }
}

let pending = new Set<string>();
let isLoading = false;

async function tell(): Promise<void> {
  if (isLoading) {
    return;
  }
  isLoading = true;
  while (pending.size > 0) {
    const changed = pending;
    pending = new Set();
    await loadRuns();
    listeners.forEach((listener) => listener(changed));
  }
  isLoading = false;
}

/** Listens to the server for as long as the page is open. */
export function listen(onLink: () => void): void {
  if (isExport) {
    return;
  }
  const source = new EventSource('/api/events');
  const setLink = (link: 'live' | 'offline') => {
    const isBack = link === 'live' && store.link === 'offline';
    store.link = link;
    onLink();
    if (isBack) {  // what happened in between
      store.runs.forEach((run) => pending.add(run.id));
      pending.add('');
      void tell();
    }
  };
  source.addEventListener('open', () => setLink('live'));
  source.addEventListener('error', () => setLink('offline'));
  source.addEventListener('runs', (event) => {
    try {
      (JSON.parse((event as MessageEvent<string>).data) as {changed: string[]}).changed.forEach((id) => pending.add(id));
    } catch {
      return;
    }
    void tell();
  });
}

/** What a filter is compared with. */
function textOf(run: Run): string {
  return [run.id, run.name, run.status, ...Object.entries(run.config).map(([key, value]) => `${key}=${value}`)].join('\n');
}

let texts = new WeakMap<Run, string>();

/** The runs that the filter leaves, pinned ones first. */
export function visibleRuns(): Run[] {
  const regex = state.filter === '' ? null : regexOf(state.filter);
  const matches = (run: Run) => {
    if (regex === null) {
      return true;
    }
    const text = texts.get(run) ?? textOf(run);
    texts.set(run, text);
    return regex.test(text);
  };
  const pinned = new Set(state.pinned);
  return store.runs.filter((run) => pinned.has(run.id) || matches(run));
}

const defaultRuns = 8;

/** The runs with curves: those selected, else the newest. */
export function shownRuns(): Run[] {
  const chosen = state.selected.map((id) => store.byId.get(id)).filter((run): run is Run => run !== undefined);
  if (chosen.length > 0) {
    return chosen;
  }
  const newest = [...visibleRuns()].sort((a, b) => b.begin - a.begin).slice(0, defaultRuns);
  const baseline = store.byId.get(state.baseline);
  return baseline !== undefined && !newest.includes(baseline) ? [baseline, ...newest] : newest;
}

/** Keys of the config whose values differ among runs, without those that differ always. Runs that recorded no config do not count. */
export function differingKeys(all: Run[]): string[] {
  const runs = all.filter((run) => Object.keys(run.config).length > 0);
  const values = new Map<string, Set<string>>();
  for (const run of runs) {
    for (const [key, value] of Object.entries(run.config)) {
      let set = values.get(key);
      if (set === undefined) {
        values.set(key, set = new Set());
      }
      set.add(value);
    }
  }
  const present = (key: string) => runs.filter((run) => key in run.config).length;
  return [...values.keys()]
      .filter((key) => !/(^|\.)(model_dir|run_name)$/.test(key))
      .filter((key) => (values.get(key)?.size ?? 0) > 1 || present(key) < runs.length)
      .sort((a, b) => present(b) - present(a) || a.localeCompare(b));
}
