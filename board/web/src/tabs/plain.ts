// Tabs of a run that are lists and texts.

import {api, finite, type Diff, type RunDetail, type Table} from '../api';
import {ChartGrid, chartTools} from '../chart_grid';
import {h, regexField, regexOf, select, settled} from '../dom';
import {difference, count, duration, moment, number} from '../format';
import {alertTable} from '../pages/alerts';
import {otherRuns, type Tab} from '../pages/run';
import {change, state} from '../state';
import {store} from '../store';
import {tableOf} from '../table';

export class MetricsTab implements Tab {
  private readonly tools = chartTools();
  private readonly grid = new ChartGrid(() => this.ids());
  readonly root = h('div', {class: 'charts'}, this.tools.root, this.grid.root);
  private id = '';

  show(run: RunDetail): void {
    this.id = run.id;
    this.grid.news(new Set([run.id]));
  }

  update(): void {
    this.tools.update();
    this.grid.update();
  }

  close(): void {
    this.grid.close();
  }

  private ids(): string[] {
    return state.baseline !== '' && state.baseline !== this.id && store.byId.has(state.baseline) ? [this.id, state.baseline] : [this.id];
  }
}

/** Every key, or the keys in which another run differs. */
export class ConfigTab implements Tab {
  private readonly choice = h('span');
  private readonly content = h('div');
  private readonly filter = regexField('Filter keys', 'Filter keys', '', () => this.showAll(), 'key-filter');
  readonly root = h('div', {}, h('div', {class: 'tools'}, this.choice, this.filter), this.content);
  private run: RunDetail | null = null;
  private compared = '';

  show(run: RunDetail): void {
    const isFirst = this.run === null;
    this.run = run;
    if (isFirst) {
      const options: [string, string][] = [['', 'nothing'], ...otherRuns(run.id)];
      this.choice.replaceChildren(select('compare with', options, state.other, (other) => change({other})));
      this.update();
    }
  }

  update(): void {
    const run = this.run as RunDetail;
    const other = store.byId.has(state.other) && state.other !== run.id ? state.other : '';
    this.filter.hidden = other !== '';
    if (other === '') {
      this.compared = '';
      this.showAll();
    } else if (other !== this.compared) {
      this.compared = other;
      api.diff(run.id, other).then((diff) => this.compared === other && this.showDiff(diff))
          .catch((error: Error) => this.content.replaceChildren(h('p', {class: 'error'}, error.message)));
    }
  }

  private showAll(): void {
    const run = this.run as RunDetail;
    const regex = regexOf(this.filter.value) ?? /(?:)/;
    const keys = Object.keys(run.config).sort().filter((key) => regex.test(`${key}=${run.config[key]}`));
    const rows = keys.map((key) => h('tr', {}, h('td', {class: 'key'}, key), h('td', {class: 'mono'}, run.config[key])));
    const table = h('table', {class: 'table'}, h('thead', {}, h('tr', {}, h('th', {}, 'Key'), h('th', {}, 'Value'))), h('tbody', {}, ...rows));
    const text = h('details', {}, h('summary', {}, 'As TOML'), h('pre', {class: 'text'}, run.config_text));
    this.content.replaceChildren(keys.length > 0 ? table : h('p', {class: 'empty'}, run.config_text === '' ?
        'This run recorded no config: it was set up by a program.' : 'No key matches the filter.'), run.config_text === '' ? '' : text);
  }

  private showDiff(diff: Diff): void {
    const run = this.run as RunDetail;
    const other = store.byId.get(this.compared);
    const head = (what: string, last: string) => h('thead', {}, h('tr', {}, h('th', {}, what), h('th', {}, run.name), h('th', {}, other?.name ?? ''), h('th', {}, last)));
    const cell = (value: string | null) => (value === null ? h('td', {class: 'muted'}, 'not set') : h('td', {class: 'mono'}, value));
    const config = diff.config.map((row) => h('tr', {}, h('td', {class: 'key'}, row.key), cell(row.a), cell(row.b), h('td')));
    const results = diff.results.map((row) => h('tr', {}, h('td', {class: 'key'}, row.metric), h('td', {class: 'num'}, number(row.a)),
        h('td', {class: 'num'}, number(row.b)), h('td', {class: 'num'}, difference(finite(row.b), finite(row.a))?.text ?? '')));
    const first = diff.first_difference;
    this.content.replaceChildren(
        h('h2', {}, 'Config'),
        config.length === 0 ? h('p', {class: 'empty'}, 'The configs are equal.') :
                              h('table', {class: 'table diff'}, head('Key', ''), h('tbody', {}, ...config)),
        h('h2', {}, 'Results'),
        first === null ? '' : h('p', {}, `The first difference is in ${first.metric} at update ${count(first.step)}.`),
        results.length === 0 ? h('p', {class: 'empty'}, 'The last values are equal.') :
                               h('table', {class: 'table diff'}, head('Metric', 'Difference'), h('tbody', {}, ...results)));
  }
}

/** Checkpoints, validations with their values, and the tables that `validate_all` wrote. */
export class CheckpointsTab implements Tab {
  private readonly saves = h('div');
  private readonly validations = h('div');
  private readonly tables = h('div');
  readonly root = h('div', {}, h('h2', {}, 'Checkpoints'), this.saves, h('h2', {}, 'Validations'), this.validations, this.tables);
  private known = '';

  show(run: RunDetail): void {
    const hasVerified = run.saves.some((save) => save.verified !== undefined);
    const saves = run.saves.map((save) => [count(save.step), moment(save.time), duration(save.time - run.begin), save.path,
                                           ...(hasVerified ? [save.verified ?? ''] : [])]);
    this.saves.replaceChildren(saves.length === 0 ? h('p', {class: 'empty'}, 'No checkpoint yet.') : tableOf({
      columns: ['Update', 'Saved', 'After', 'File', ...(hasVerified ? ['Verified'] : [])], rows: saves.reverse(),
    }));
    const shape = JSON.stringify([run.validations, run.tables]);
    if (shape !== this.known) {
      this.known = shape;
      void this.showValidations(run);
      void this.showTables(run);
    }
  }

  private async showValidations(run: RunDetail): Promise<void> {
    if (run.validations.length === 0) {
      this.validations.replaceChildren(h('p', {class: 'empty'}, 'No validation yet.'));
      return;
    }
    const labels = [...new Set(run.validations.map((one) => one.label))];
    const metrics = run.metrics.filter((name) => labels.some((label) => name.startsWith(`${label}/`)) && !name.includes('/confusion/')).slice(0, 40);
    const query = {runs: [run.id], metrics, x: 'update' as const, smooth: 0, points: 2000, from: null, to: null};
    const series = metrics.length === 0 ? [] : await api.series(query).catch(() => []);
    const values = new Map(series.map((one) => [one.metric, new Map(one.x.map((x, i) => [x, one.y[i]]))]));
    this.validations.replaceChildren(...labels.map((label) => {
      const names = metrics.filter((name) => name.startsWith(`${label}/`));
      const rows = run.validations.filter((one) => one.label === label).reverse().map((one) =>
          [count(one.step), moment(one.time), ...names.map((name) => number(values.get(name)?.get(one.step)))]);
      return h('div', {}, labels.length > 1 && h('h3', {}, label),
               tableOf({columns: ['Update', 'When', ...names.map((name) => name.slice(label.length + 1))], rows}));
    }));
  }

  private async showTables(run: RunDetail): Promise<void> {
    const parts: HTMLElement[] = [];
    for (const name of run.tables) {
      const table = await api.table(run.id, name).catch((error: Error): Table => ({columns: ['error'], rows: [[error.message]]}));
      parts.push(h('h2', {}, name), tableOf(table));
    }
    this.tables.replaceChildren(...parts);
  }
}

export class LogTab implements Tab {
  private readonly search = h('input', {type: 'search', placeholder: 'Search the log', 'aria-label': 'Search the log', id: 'log-search', spellcheck: 'false'});
  private readonly tally = h('span', {class: 'muted', role: 'status'});
  private readonly lines = h('div', {class: 'log', tabindex: '0', 'aria-label': 'Log'});
  readonly root = h('div', {}, h('div', {class: 'tools'}, this.search, this.tally), this.lines);
  private id = '';
  private asked = 0;

  constructor() {
    this.search.addEventListener('input', settled(120, () => this.load()));
  }

  show(run: RunDetail): void {
    this.id = run.id;
    this.load();
  }

  private load(): void {
    const asked = ++this.asked;
    const text = this.search.value;
    api.log(this.id, text, 500).then((log) => asked === this.asked && this.showLines(log, text)).catch((error: Error) => {
      this.lines.replaceChildren(h('p', {class: 'empty'}, error.message));
    });
  }

  private showLines({lines, count: all}: {lines: string[], count: number}, text: string): void {
    const isAtEnd = this.lines.scrollTop + this.lines.clientHeight >= this.lines.scrollHeight - 20;
    const hits = text === '' ? `${count(all)} lines` : `${count(all)} lines with “${text}”`;
    this.tally.textContent = lines.length < all ? `${hits}, the last ${lines.length} shown` : hits;
    this.lines.replaceChildren(...lines.map((line) => h('div', {class: levelOf(line)}, ...marked(line, text))));
    if (isAtEnd) {
      this.lines.scrollTop = this.lines.scrollHeight;
    }
  }
}

function levelOf(line: string): string {
  return /\b(error|critical)\b/i.test(line) ? 'line error' : /\bwarn(ing)?\b/i.test(line) ? 'line warn' : 'line';
}

/** The line with what was searched for marked. */
function marked(line: string, text: string): (string | HTMLElement)[] {
  const at = text === '' ? -1 : line.toLowerCase().indexOf(text.toLowerCase());
  return at < 0 ? [line] : [line.slice(0, at), h('mark', {}, line.slice(at, at + text.length)), line.slice(at + text.length)];
}

export class AlertsTab implements Tab {
  readonly root = h('div');

  show(run: RunDetail): void {
    this.root.replaceChildren(alertTable(run.alerts, false));
  }
}
