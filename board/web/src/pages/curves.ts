// Curves of several runs over each other.

import {ChartGrid, chartTools} from '../chart_grid';
import {assignColors, colorOf, dashOf} from '../colors';
import {button, h, regexField} from '../dom';
import type {Page} from '../page';
import {change, placeOf, state, toggled} from '../state';
import {shownRuns, store, visibleRuns} from '../store';
import {statusOf} from '../status';
import {VirtualList} from '../virtual_list';
import type {Run} from '../api';

export class CurvesPage implements Page {
  readonly root: HTMLElement;
  private runs: Run[] = [];
  private readonly list = new VirtualList(30, (index) => this.row(this.runs[index]), {class: 'virtual picker'});
  private readonly grid = new ChartGrid(() => shownRuns().map((run) => run.id));
  private readonly tools = chartTools();
  private readonly tally = h('span', {class: 'muted'});
  private readonly filter = regexField('Filter runs by regular expression', 'Filter runs', state.filter, (text) => change({filter: text}), 'filter');

  constructor() {
    const side = h('aside', {class: 'side', 'aria-label': 'Runs with curves'},
                   this.filter,
                   h('div', {class: 'side-tools'}, this.tally,
                     button('all', () => change({selected: visibleRuns().map((run) => run.id)}), {class: 'quiet', title: 'Select all that the filter leaves'}),
                     button('newest', () => change({selected: []}), {class: 'quiet', title: 'No selection: the newest runs'})),
                   this.list.root);
    this.root = h('section', {class: 'page curves-page'}, side, h('div', {class: 'charts'}, this.tools.root, this.grid.root));
    this.update();
  }

  update(): void {
    const shown = shownRuns();
    const visible = visibleRuns();
    const isShown = new Set(shown);
    assignColors(shown.map((run) => run.id));
    this.runs = [...shown, ...visible.filter((run) => !isShown.has(run)).sort((a, b) => b.begin - a.begin)];
    this.tally.textContent = `${shown.length} of ${store.runs.length} shown`;
    if (document.activeElement !== this.filter) {
      this.filter.value = state.filter;
    }
    this.tools.update();
    this.list.update(this.runs.length);
    this.grid.update();
  }

  news(changed: Set<string>): void {
    this.update();
    this.grid.news(changed);
  }

  close(): void {
    this.list.close();
    this.grid.close();
  }

  private row(run: Run): HTMLElement {
    const shown = shownRuns();
    const isShown = shown.includes(run);
    const isBaseline = state.baseline === run.id;
    const box = h('input', {type: 'checkbox', checked: isShown, 'data-focus': `show ${run.id}`});
    box.addEventListener('change', () => change({selected: toggled(shown.map((one) => one.id), run.id)}));
    const swatch = h('i', {class: 'swatch', style: isShown ?
        {borderTopColor: colorOf(run.id), borderTopStyle: dashOf(run.id).length > 0 ? 'dashed' : 'solid'} : {borderTopColor: 'transparent'}});
    return h('div', {class: 'pick-row', 'data-run': run.id},
             h('label', {title: run.id}, box, swatch, h('span', {class: 'name'}, run.name)),
             run.status === 'done' ? null : statusOf(run.status),
             button(isBaseline ? '★' : '☆', () => change({baseline: isBaseline ? '' : run.id}),
                    {class: isBaseline ? 'mark on' : 'mark', title: 'Baseline', 'aria-label': `Baseline ${run.name}`,
                     'aria-pressed': String(isBaseline), 'data-focus': `base ${run.id}`}),
             h('a', {class: 'mark', href: placeOf({page: 'run', run: run.id, tab: 'metrics'}), title: 'Open', 'aria-label': `Open ${run.name}`}, '→'));
  }
}
