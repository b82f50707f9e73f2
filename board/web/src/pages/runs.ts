// The table of runs: filter, groups, pins, a baseline, and what distinguishes them.

import type {Run} from '../api';
import {verdict} from '../chart';
import {assignColors, colorOf} from '../colors';
import {columnsOf, compare, result, type Column, type Columns} from '../columns';
import {button, h, regexField, select} from '../dom';
import {difference, number, shortKey} from '../format';
import type {Page} from '../page';
import {change, placeOf, state, toggled} from '../state';
import {differingKeys, shownRuns, store, visibleRuns} from '../store';
import {statusOf} from '../status';
import {VirtualList} from '../virtual_list';

type Row = {run: Run} | {group: string, runs: Run[]};

const rowHeight = 34;

export class RunsPage implements Page {
  readonly root: HTMLElement;
  private rows: Row[] = [];
  private columns: Columns = {all: [], shown: []};
  private active = 0;
  private readonly closed = new Set<string>();
  private readonly list = new VirtualList(rowHeight, (index) => this.row(index), {
    role: 'grid', tabindex: '0', class: 'virtual runs', 'aria-label': 'Runs',
    onkeydown: (event: KeyboardEvent) => this.tableKey(event),
  });
  private readonly head = h('div', {class: 'run-row head', role: 'row'});
  private readonly tally = h('span', {class: 'muted', role: 'status', id: 'tally'});
  private readonly filter = regexField('Filter runs by regular expression', 'Filter runs: name, status or key=value', state.filter,
                                       (text) => change({filter: text}), 'filter');
  private readonly grouping = h('span');
  private readonly picker = h('div', {class: 'popup tall'});
  private readonly compareLink = h('a', {class: 'button'}, 'Show curves');
  private keys: string[] = [];

  constructor() {
    this.list.root.prepend(this.head);
    const columns = h('details', {class: 'menu', id: 'columns'}, h('summary', {class: 'button'}, 'Columns'), this.picker);
    columns.addEventListener('toggle', () => columns.open && this.fillPicker());
    this.root = h('section', {class: 'page runs-page'},
                  h('div', {class: 'tools'}, this.filter, this.grouping, columns, this.compareLink,
                    button('Clear selection', () => change({selected: []}), {class: 'quiet', id: 'clear'}), this.tally),
                  this.list.root);
    this.update();
  }

  update(): void {
    const runs = visibleRuns();
    this.columns = columnsOf(runs, state.columns);
    this.rows = this.arranged(runs);
    this.active = Math.min(this.active, Math.max(0, this.rows.length - 1));
    assignColors(shownRuns().map((run) => run.id));
    if (document.activeElement !== this.filter) {
      this.filter.value = state.filter;
    }
    this.showGrouping();
    this.showHead();
    const selected = state.selected.length;
    this.tally.textContent = `${runs.length === store.runs.length ? '' : `${number(runs.length)} of `}${number(store.runs.length)} runs` +
        (selected > 0 ? `, ${selected} selected` : '');
    this.compareLink.setAttribute('href', placeOf({page: 'curves'}));
    (this.root.querySelector('#clear') as HTMLElement).hidden = selected === 0;
    this.list.update(this.rows.length);
    this.list.root.classList.toggle('nothing', this.rows.length === 0);
    this.showEmpty();
  }

  news(): void {
    this.update();
  }

  key(event: KeyboardEvent): boolean {
    return this.tableKey(event);
  }

  close(): void {
    this.list.close();
  }

  private showEmpty(): void {
    this.root.querySelector('.empty')?.remove();
    if (this.rows.length === 0) {
      this.root.append(h('p', {class: 'empty'}, store.error !== '' ? `The server does not answer: ${store.error}` :
          store.runs.length === 0 ? 'No runs here yet. A run appears when it writes its first line.' : 'No run matches the filter.'));
    }
  }

  private showGrouping(): void {
    const keys = differingKeys(store.runs);
    if (keys.join('\n') === this.keys.join('\n') && this.grouping.childElementCount > 0) {
      (this.grouping.querySelector('select') as HTMLSelectElement).value = state.group;
      return;
    }
    this.keys = keys;
    const options: [string, string][] = [['', 'no groups'], ['status', 'status'], ...keys.map((key): [string, string] => [key, shortKey(key, keys)])];
    this.grouping.replaceChildren(select('group by', options, state.group, (group) => change({group})));
  }

  private arranged(runs: Run[]): Row[] {
    const column = this.columns.all.find((one) => one.id === state.sort);
    const value = column?.value ?? ((run: Run) => run.name);
    const sign = state.descending ? -1 : 1;
    const place = new Map(runs.map((run, index) => [run, index]));
    const sorted = [...runs].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      const order = x === null || y === null ? compare(x, y) : sign * compare(x, y);  // nothing is last
      return order || (place.get(a) ?? 0) - (place.get(b) ?? 0);
    });
    const isPinned = (run: Run) => state.pinned.includes(run.id);
    const pinned = sorted.filter(isPinned).map((run): Row => ({run}));
    const others = sorted.filter((run) => !isPinned(run));
    if (state.group === '') {
      return [...pinned, ...others.map((run): Row => ({run}))];
    }
    const groups = new Map<string, Run[]>();
    for (const run of others) {
      const name = state.group === 'status' ? run.status : run.config[state.group] ?? '(not set)';
      groups.set(name, [...groups.get(name) ?? [], run]);
    }
    const rows = [...pinned];
    for (const name of [...groups.keys()].sort((a, b) => a.localeCompare(b, undefined, {numeric: true}))) {
      const members = groups.get(name) ?? [];
      rows.push({group: name, runs: members});
      if (!this.closed.has(name)) {
        rows.push(...members.map((run): Row => ({run})));
      }
    }
    return rows;
  }

  private showHead(): void {
    const columns = this.columns.shown;
    const template = `88px minmax(220px, 1fr) ${columns.map((column) => `${column.width}px`).join(' ')}`;
    this.list.root.style.setProperty('--columns', template);
    this.list.root.style.setProperty('--least', `${344 + columns.reduce((sum, column) => sum + column.width + 12, 0)}px`);
    this.head.replaceChildren(
        h('span', {role: 'columnheader', 'aria-label': 'Selected, pinned, baseline'}), this.headCell({id: 'name', title: 'Run', hint: 'Name and folder'}),
        ...columns.map((column) => this.headCell(column)));
  }

  private headCell(column: {id: string, title: string, hint: string, isNumber?: boolean}): HTMLElement {
    const isSorted = state.sort === column.id;
    const sort = () => change({sort: column.id, descending: isSorted ? !state.descending : column.isNumber === true});
    return h('span', {role: 'columnheader', class: column.isNumber ? 'num' : '', title: column.hint,
                      'aria-sort': isSorted ? (state.descending ? 'descending' : 'ascending') : 'none'},
             button(column.title + (isSorted ? (state.descending ? ' ↓' : ' ↑') : ''), sort, {class: 'sort', tabindex: '-1', 'data-focus': `sort ${column.id}`}));
  }

  private row(index: number): HTMLElement {
    const row = this.rows[index];
    return 'run' in row ? this.runRow(row.run, index) : this.groupRow(row.group, row.runs, index);
  }

  private groupRow(name: string, runs: Run[], index: number): HTMLElement {
    const isOpen = !this.closed.has(name);
    const bests = this.columns.shown.filter((column) => column.better !== undefined).map((column) => bestOf(column, runs));
    return h('div', {class: index === this.active ? 'run-row group active' : 'run-row group', role: 'row', onclick: () => this.toggleGroup(name)},
             h('span', {role: 'gridcell', class: 'group-name', 'aria-expanded': String(isOpen)}, isOpen ? '▾ ' : '▸ ',
               h('b', {}, `${state.group === 'status' ? 'status' : shortKey(state.group, this.keys)} = ${name}`),
               h('span', {class: 'muted'}, `  ${runs.length} ${runs.length === 1 ? 'run' : 'runs'}`),
               h('span', {class: 'muted'}, bests.length > 0 ? `  ·  best ${bests.filter((text) => text !== '').join(', ')}` : '')));
  }

  private toggleGroup(name: string): void {
    if (!this.closed.delete(name)) {
      this.closed.add(name);
    }
    this.update();
  }

  private runRow(run: Run, index: number): HTMLElement {
    const isShown = shownRuns().includes(run);
    const isSelected = state.selected.includes(run.id);
    const isBaseline = state.baseline === run.id;
    const isPinned = state.pinned.includes(run.id);
    const box = h('input', {type: 'checkbox', checked: isSelected, tabindex: '-1', 'aria-label': `Select ${run.name}`});
    box.addEventListener('change', () => change({selected: toggled(state.selected, run.id)}));
    const classes = ['run-row', index === this.active ? 'active' : '', isSelected ? 'selected' : '', isPinned ? 'pinned' : ''];
    return h('div', {class: classes.filter((one) => one !== '').join(' '), role: 'row', 'aria-selected': String(isSelected), 'data-run': run.id,
                     onclick: () => this.activate(index)},
             h('span', {role: 'gridcell', class: 'pick'}, box, h('i', {class: 'dot', style: {background: isShown ? colorOf(run.id) : 'transparent'}}),
               button(isPinned ? '◆' : '◇', () => change({pinned: toggled(state.pinned, run.id)}),
                      {class: isPinned ? 'mark on' : 'mark', title: 'Pin to the top (p)', 'aria-label': `Pin ${run.name}`,
                       'aria-pressed': String(isPinned), tabindex: '-1', 'data-focus': `pin ${run.id}`}),
               button(isBaseline ? '★' : '☆', () => change({baseline: isBaseline ? '' : run.id}),
                      {class: isBaseline ? 'mark on' : 'mark', title: 'Baseline that others are compared with (b)',
                       'aria-label': `Baseline ${run.name}`, 'aria-pressed': String(isBaseline), tabindex: '-1', 'data-focus': `base ${run.id}`})),
             h('span', {role: 'gridcell', class: 'name'},
               h('a', {href: placeOf({page: 'run', run: run.id, tab: 'metrics'}), title: run.id, tabindex: '-1'}, run.name),
               run.id !== run.name && h('span', {class: 'muted path'}, run.id)),
             ...this.columns.shown.map((column) => this.cell(run, column)));
  }

  private cell(run: Run, column: Column): HTMLElement {
    if (column.id === 'status') {
      return h('span', {role: 'gridcell', title: run.reason ?? ''}, statusOf(run.status));
    }
    if (column.id === 'step') {
      return h('span', {role: 'gridcell', class: 'num'}, progressOf(run));
    }
    const text = column.text(run);
    if (column.better === undefined) {
      return h('span', {role: 'gridcell', class: column.isNumber ? 'num' : 'value', title: text}, text);
    }
    const base = store.byId.get(state.baseline);
    const metric = column.id.slice('metric:'.length);
    const diff = base === undefined || base === run ? null : difference(result(run, metric), result(base, metric));
    return h('span', {role: 'gridcell', class: 'num metric', title: titleOf(run, metric)},
             diff !== null && h('span', {class: `change ${verdict(diff.change, column.better)}`}, diff.text), h('span', {}, text));
  }

  private activate(index: number): void {
    if (index !== this.active) {
      this.active = index;
      this.list.update(this.rows.length);
    }
  }

  private move(by: number): void {
    this.active = Math.min(Math.max(this.active + by, 0), this.rows.length - 1);
    this.list.reveal(this.active);
  }

  private tableKey(event: KeyboardEvent): boolean {
    const row = this.rows[this.active];
    const onRun = (act: (run: Run) => void) => row !== undefined && 'run' in row && act(row.run);
    const onRow: Record<string, () => void> = {
      ArrowDown: () => this.move(1), j: () => this.move(1), ArrowUp: () => this.move(-1), k: () => this.move(-1),
      PageDown: () => this.move(15), PageUp: () => this.move(-15), Home: () => this.move(-Infinity), End: () => this.move(Infinity),
      ' ': () => onRun((run) => change({selected: toggled(state.selected, run.id)})),
      x: () => onRun((run) => change({selected: toggled(state.selected, run.id)})),
      p: () => onRun((run) => change({pinned: toggled(state.pinned, run.id)})),
      b: () => onRun((run) => change({baseline: state.baseline === run.id ? '' : run.id})),
      Enter: () => {
        onRun((run) => change({page: 'run', run: run.id, tab: 'metrics'}));
        if (row !== undefined && 'group' in row) {
          this.toggleGroup(row.group);
        }
      },
    };
    const target = event.target as HTMLElement;
    const act = onRow[event.key];
    if (act === undefined || ((event.key === 'Enter' || event.key === ' ') && target.closest('button, a, input, summary') !== null)) {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    act();
    return true;
  }

  private fillPicker(): void {
    const shown = new Set(this.columns.shown.map((column) => column.id));
    const boxes = this.columns.all.map((column) => {
      const box = h('input', {type: 'checkbox', checked: shown.has(column.id)});
      box.addEventListener('change', () => {
        box.checked ? shown.add(column.id) : shown.delete(column.id);
        change({columns: [...shown]});
      });
      return h('label', {class: 'check', title: column.hint}, box, h('span', {}, column.title));
    });
    this.picker.replaceChildren(button('Let rondo choose', () => {
      change({columns: []});
      this.fillPicker();
    }, {class: 'quiet'}), ...boxes);
  }
}

function bestOf(column: Column, runs: Run[]): string {
  const values = runs.map(column.value).filter((value): value is number => typeof value === 'number');
  if (values.length === 0 || column.better === null) {
    return '';
  }
  return `${column.title} ${number(column.better === true ? Math.max(...values) : Math.min(...values))}`;
}

function titleOf(run: Run, metric: string): string {
  const summary = run.metrics[metric];
  if (summary === undefined) {
    return '';
  }
  const best = summary.best === undefined || summary.best === null ? '' : `, best ${number(summary.best)} at update ${number(summary.best_step)}`;
  return `${metric}: last ${number(summary.last)}${best}`;
}

function progressOf(run: Run): HTMLElement {
  const share = run.updates === null || run.updates === 0 ? null : Math.min(1, run.step / run.updates);
  return h('span', {class: 'progress', title: run.updates === null ? '' : `${run.step} of ${run.updates}`},
           h('span', {}, number(run.step)),
           share !== null && h('i', {class: 'bar'}, h('i', {style: {width: `${100 * share}%`}})));
}
