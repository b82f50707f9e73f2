// One run, by tabs.

import {api, type RunDetail} from '../api';
import {assignColors} from '../colors';
import {h} from '../dom';
import {duration, moment, number} from '../format';
import type {Page} from '../page';
import {change, placeOf, state} from '../state';
import {seconds} from '../columns';
import {store} from '../store';
import {statusOf} from '../status';
import {AlertsTab, CheckpointsTab, ConfigTab, LogTab, MetricsTab} from '../tabs/plain';
import {MediaTab} from '../tabs/media';
import {StepTab} from '../tabs/step';

/** The content of a tab. It gets the run whenever that has news. */
export interface Tab {
  root: HTMLElement;
  show(run: RunDetail): void;
  /** The state changed. */
  update?(): void;
  close?(): void;
}

interface TabKind {
  id: string;
  title: string;
  make: () => Tab;
  count?: (run: RunDetail) => number;
}

const kinds: TabKind[] = [
  {id: 'metrics', title: 'Metrics', make: () => new MetricsTab()},
  {id: 'config', title: 'Config', make: () => new ConfigTab()},
  {id: 'checkpoints', title: 'Checkpoints', make: () => new CheckpointsTab(), count: (run) => run.saves.length},
  {id: 'media', title: 'Media', make: () => new MediaTab(), count: (run) => new Set(run.media.map((one) => `${one.kind} ${one.name}`)).size},
  {id: 'step', title: 'Traced step', make: () => new StepTab(), count: (run) => run.steps.length},
  {id: 'log', title: 'Log', make: () => new LogTab()},
  {id: 'alerts', title: 'Alerts', make: () => new AlertsTab(), count: (run) => run.alerts.length},
];

export class RunPage implements Page {
  private readonly head = h('header', {class: 'run-head'});
  private readonly tabs = h('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Views of the run'});
  private readonly content = h('div', {class: 'tab-content', role: 'tabpanel', tabindex: '-1'});
  readonly root = h('section', {class: 'page run-page'}, this.head, this.tabs, this.content);
  private run: RunDetail | null = null;
  private tab: Tab | null = null;
  private tabId = '';
  private isOpen = true;

  constructor(private readonly id: string) {
    assignColors([id]);
    this.tabs.addEventListener('keydown', (event) => this.tabKey(event));
    this.load();
  }

  update(): void {
    if (this.run !== null) {
      this.showTab();
      this.tab?.update?.();
    }
  }

  news(changed: Set<string>): void {
    if (changed.has(this.id) || changed.has('')) {
      this.load();
    }
  }

  key(event: KeyboardEvent): boolean {
    const kind = kinds[Number(event.key) - 1];
    if (kind === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return false;
    }
    change({tab: kind.id});
    return true;
  }

  close(): void {
    this.isOpen = false;
    this.tab?.close?.();
  }

  private load(): void {
    api.run(this.id).then((run) => {
      if (this.isOpen) {
        this.run = run;
        this.showHead(run);
        this.showTab();
        this.tab?.show(run);
      }
    }).catch((error: Error) => {
      if (this.isOpen && this.run === null) {
        this.head.replaceChildren(h('h1', {}, this.id), h('p', {class: 'error'}, error.message));
      }
    });
  }

  private showHead(run: RunDetail): void {
    const length = seconds({...run, metrics: {}, alerts: 0, saves: 0});
    const facts: [string, string][] = [
      ['updates', run.updates === null ? number(run.step) : `${number(run.step)} of ${number(run.updates)}`],
      ['time', duration(length)], ['started', moment(run.begin)], ['sessions', number(run.sessions)],
      ['host', run.process > 0 ? `${run.host}, process ${run.process}` : run.host], ['rondo', run.version],
    ];
    const share = run.updates !== null && run.updates > 0 ? Math.min(1, run.step / run.updates) : null;
    this.head.replaceChildren(
        h('h1', {}, run.name, ' ', statusOf(run.status)),
        run.id !== run.name && h('p', {class: 'muted path'}, run.id) || '',
        h('dl', {class: 'facts'}, ...facts.filter(([, value]) => value !== '' && value !== '–')
            .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
        share !== null && run.status === 'running' ? h('i', {class: 'bar wide-bar'}, h('i', {style: {width: `${100 * share}%`}})) : '',
        run.reason !== '' && run.status !== 'done' ? h('p', {class: run.status === 'failed' ? 'error' : 'note'}, run.reason) : '',
        run.damaged_lines > 0 ? h('p', {class: 'note'}, `${run.damaged_lines} lines of the record are damaged and left out.`) : '');
  }

  private showTab(): void {
    const run = this.run as RunDetail;
    const kind = kinds.find((one) => one.id === state.tab) ?? kinds[0];
    const focused = this.tabs.contains(document.activeElement);
    this.tabs.replaceChildren(...kinds.map((one, index) => {
      const count = one.count?.(run) ?? null;
      return h('a', {role: 'tab', href: placeOf({tab: one.id}), 'aria-selected': String(one === kind), tabindex: one === kind ? '0' : '-1',
                     title: `Key ${index + 1}`, id: `tab-${one.id}`},
               one.title, count !== null && h('span', {class: 'muted'}, ` ${count}`));
    }));
    if (focused) {
      this.tabs.querySelector<HTMLElement>('[aria-selected=true]')?.focus();
    }
    if (kind.id !== this.tabId) {
      this.tab?.close?.();
      this.tabId = kind.id;
      this.tab = kind.make();
      this.content.replaceChildren(this.tab.root);
      this.content.setAttribute('aria-labelledby', `tab-${kind.id}`);
      this.tab.show(run);
    }
  }

  private tabKey(event: KeyboardEvent): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by !== 0) {
      const at = kinds.findIndex((one) => one.id === this.tabId);
      event.preventDefault();
      change({tab: kinds[(at + by + kinds.length) % kinds.length].id});
    }
  }
}

/** Other runs, for a choice. */
export function otherRuns(id: string): [string, string][] {
  return store.runs.filter((run) => run.id !== id).sort((a, b) => b.begin - a.begin).map((run) => [run.id, run.name === run.id ? run.id : `${run.name} (${run.id})`]);
}
