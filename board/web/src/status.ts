import {h} from './dom';

const known = ['running', 'done', 'stopped', 'failed', 'crashed'];

/** A run's status: a shape, a colour and the word. */
export function statusOf(status: string): HTMLElement {
  return h('span', {class: `status ${known.includes(status) ? status : ''}`}, h('i', {'aria-hidden': 'true'}), status);
}
