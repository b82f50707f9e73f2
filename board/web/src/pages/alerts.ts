// What the runs warned of, newest first.

import {api, type Alert} from '../api';
import {h, link} from '../dom';
import {count, moment} from '../format';
import type {Page} from '../page';
import {placeOf} from '../state';
import {store} from '../store';

export function alertTable(alerts: Alert[], hasRuns: boolean): HTMLElement {
  if (alerts.length === 0) {
    return h('p', {class: 'empty'}, 'No alerts.');
  }
  const rows = [...alerts].sort((a, b) => b.time - a.time).map((alert) => h('tr', {},
      h('td', {}, h('span', {class: alert.level === 'error' ? 'level error' : 'level'}, alert.level)),
      hasRuns && h('td', {}, link(store.byId.get(alert.run ?? '')?.name ?? alert.run ?? '',
                                  placeOf({page: 'run', run: alert.run ?? '', tab: 'metrics'}), {title: alert.run})),
      h('td', {class: 'num'}, count(alert.step)), h('td', {class: 'nowrap'}, moment(alert.time)), h('td', {}, alert.text)));
  return h('table', {class: 'table'},
           h('thead', {}, h('tr', {}, h('th', {}, 'Level'), hasRuns && h('th', {}, 'Run'), h('th', {class: 'num'}, 'Update'), h('th', {}, 'When'),
                            h('th', {}, 'What'))),
           h('tbody', {}, ...rows));
}

export class AlertsPage implements Page {
  private readonly content = h('div');
  readonly root = h('section', {class: 'page text-page'}, h('h1', {}, 'Alerts'), this.content);
  private isOpen = true;

  constructor() {
    this.load();
  }

  update(): void {}

  news(): void {
    this.load();
  }

  close(): void {
    this.isOpen = false;
  }

  private load(): void {
    api.alerts().then(({alerts}) => this.isOpen && this.content.replaceChildren(alertTable(alerts, true)))
        .catch((error: Error) => this.content.replaceChildren(h('p', {class: 'error'}, error.message)));
  }
}
