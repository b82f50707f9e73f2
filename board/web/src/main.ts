// The frame of the page: where one is, what is live, the look, and keys that hold everywhere.

import {button, h} from './dom';
import {AlertsPage} from './pages/alerts';
import {CurvesPage} from './pages/curves';
import {RunPage} from './pages/run';
import {RunsPage} from './pages/runs';
import type {Page} from './page';
import {change, onState, placeOf, state} from './state';
import {listen, loadRuns, onNews, store} from './store';

const places: [string, string][] = [['runs', 'Runs'], ['curves', 'Curves'], ['alerts', 'Alerts']];

const keys: [string, string][] = [
  ['r  c  a', 'runs, curves, alerts'], ['/', 'filter or search'], ['↑ ↓  j k', 'move through runs'], ['Enter', 'open the run'],
  ['Space  x', 'select for curves'], ['p', 'pin to the top'], ['b', 'make it the baseline'], ['1 … 7', 'tabs of a run'],
  ['[  ]', 'less and more smoothing'], ['l', 'logarithmic y axis'], ['z', 'reset the zoom'], ['t', 'dark or light'], ['?', 'this help'],
  ['Esc', 'leave a field, close a menu'],
];

const themeKey = 'rondo-board-theme';

let page: Page | null = null;
let place = '';

const nav = h('nav', {'aria-label': 'Pages'});
const root = h('span', {class: 'root'});
const live = h('span', {class: 'live', role: 'status'});
const main = h('main');

function showNav(): void {
  const alerts = store.runs.reduce((sum, run) => sum + (run.alerts ?? 0), 0);
  nav.replaceChildren(...places.map(([id, title]) =>
      h('a', {href: placeOf({page: id, run: '', tab: 'metrics', from: null, to: null}), 'aria-current': state.page === id ? 'page' : null}, title,
        id === 'alerts' && alerts > 0 && h('span', {class: 'count'}, alerts))));
  if (state.page === 'run') {
    nav.append(h('a', {href: placeOf({}), 'aria-current': 'page', class: 'crumb'}, store.byId.get(state.run)?.name ?? state.run));
  }
  root.textContent = store.root;
  root.title = store.root;
}

function showLive(): void {
  live.className = `live ${store.link === 'live' ? 'on' : store.link}`;
  live.textContent = store.link;
}

function makePage(): Page {
  switch (state.page) {
    case 'curves':
      return new CurvesPage();
    case 'alerts':
      return new AlertsPage();
    case 'run':
      return new RunPage(state.run);
    default:
      return new RunsPage();
  }
}

function show(): void {
  const now = `${state.page} ${state.run}`;
  showNav();
  if (now === place) {
    page?.update();
    return;
  }
  place = now;
  page?.close();
  page = makePage();
  main.replaceChildren(page.root);
  document.title = `${state.page === 'run' ? store.byId.get(state.run)?.name ?? state.run : state.page} · rondo board`;
  page.root.querySelector<HTMLElement>('[role=grid]')?.focus({preventScroll: true});
}

function setTheme(theme: string | null): void {
  if (theme === null) {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
}

function storedTheme(): string | null {
  try {
    const theme = localStorage.getItem(themeKey);
    return theme === 'dark' || theme === 'light' ? theme : null;
  } catch {
    return null;  // a file, or a browser that keeps nothing
  }
}

function switchTheme(): void {
  const isDark = getComputedStyle(document.documentElement).colorScheme === 'dark';
  const theme = isDark ? 'light' : 'dark';
  setTheme(theme);
  try {
    localStorage.setItem(themeKey, theme);
  } catch {
    // it holds until the page is closed
  }
  page?.update();
}

const help = h('dialog', {'aria-label': 'Help'});

function showHelp(): void {
  const licences = document.getElementById('licences') as HTMLTemplateElement;
  help.replaceChildren(
      h('h2', {}, 'Keys'), h('dl', {class: 'keys'}, ...keys.flatMap(([key, what]) => [h('dt', {}, key), h('dd', {}, what)])),
      h('p', {class: 'muted'}, 'Drag over a curve to zoom, double-click to see all. The address holds what you see.'),
      h('details', {}, h('summary', {}, `rondo ${store.version}: licences`), licences.content.cloneNode(true)),
      button('Close', () => help.close()));
  help.showModal();
}

function go(to: string): void {
  change({page: to, run: '', tab: 'metrics', from: null, to: null});
}

const anywhere: Record<string, () => void> = {
  'r': () => go('runs'), 'c': () => go('curves'), 'a': () => go('alerts'), 't': switchTheme, '?': showHelp,
  '/': () => (main.querySelector('#log-search, #filter, #metric-filter, #key-filter') as HTMLInputElement | null)?.select(),
  '[': () => change({smooth: Math.max(0, Number((state.smooth - 0.1).toFixed(2)))}),
  ']': () => change({smooth: Math.min(0.99, Number((state.smooth + 0.1).toFixed(2)))}),
  'l': () => change({logY: !state.logY}), 'z': () => change({from: null, to: null}),
};

function takesText(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement ? target.type !== 'checkbox' && target.type !== 'range' :
      target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

document.addEventListener('keydown', (event) => {
  const target = event.target as HTMLElement;
  if (event.key === 'Escape') {
    document.querySelectorAll<HTMLDetailsElement>('details.menu[open]').forEach((menu) => menu.open = false);
    if (takesText(target)) {
      target.blur();
      main.querySelector<HTMLElement>('[role=grid]')?.focus({preventScroll: true});
    }
    return;
  }
  const isArrow = event.key.startsWith('Arrow') || ['Home', 'End', 'PageUp', 'PageDown', ' ', 'Enter'].includes(event.key);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || takesText(target) || help.open ||
      (isArrow && target !== document.body)) {
    return;
  }
  if (page?.key?.(event) === true) {
    event.preventDefault();
  } else if (anywhere[event.key] !== undefined) {
    event.preventDefault();
    anywhere[event.key]();
  }
});

// A menu closes when one clicks elsewhere.
document.addEventListener('click', (event) => {
  document.querySelectorAll<HTMLDetailsElement>('details.menu[open]').forEach((menu) => {
    if (!menu.contains(event.target as Node)) {
      menu.open = false;
    }
  });
});

async function start(): Promise<void> {
  setTheme(storedTheme());
  document.getElementById('app')?.replaceChildren(
      h('header', {class: 'top'}, h('a', {class: 'mark-name', href: '#/runs'}, 'rondo'), root, nav, h('span', {class: 'gap'}), live,
        button('◐', switchTheme, {class: 'quiet', title: 'Dark or light (t)', 'aria-label': 'Dark or light', id: 'theme'}),
        button('?', showHelp, {class: 'quiet', title: 'Keys (?)', 'aria-label': 'Help', id: 'help'})),
      main, help);
  showLive();
  await loadRuns();
  show();
  onState(show);
  onNews((changed) => {
    showNav();
    page?.news(changed);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => page?.update());
  listen(showLive);
}

void start();
