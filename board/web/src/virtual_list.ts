// Rows of equal height, of which only those in sight exist.

import {h, perFrame} from './dom';

export class VirtualList {
  readonly root: HTMLElement;
  private readonly space = h('div', {class: 'space'});
  private count = 0;
  private readonly draw = perFrame(() => this.render());
  private readonly sizes = new ResizeObserver(this.draw);

  /** @param row  makes the element of a row */
  constructor(private readonly rowHeight: number, private readonly row: (index: number) => HTMLElement, props: Record<string, unknown> = {}) {
    this.root = h('div', {class: 'virtual', ...props}, this.space);
    this.root.addEventListener('scroll', this.draw, {passive: true});
    this.sizes.observe(this.root);
  }

  update(count: number): void {
    this.count = count;
    this.space.style.height = `${count * this.rowHeight}px`;
    this.render();
  }

  /** Brings a row into sight. */
  reveal(index: number): void {
    const top = index * this.rowHeight;
    const {scrollTop, clientHeight} = this.root;
    if (top < scrollTop) {
      this.root.scrollTop = top;
    } else if (top + this.rowHeight > scrollTop + clientHeight) {
      this.root.scrollTop = top + this.rowHeight - clientHeight;
    }
    this.render();
  }

  close(): void {
    this.sizes.disconnect();
  }

  private render(): void {
    const first = Math.max(0, Math.floor(this.root.scrollTop / this.rowHeight) - 6);
    const last = Math.min(this.count, Math.ceil((this.root.scrollTop + (this.root.clientHeight || 600)) / this.rowHeight) + 6);
    const focused = this.space.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.focus : undefined;
    const rows: HTMLElement[] = [];
    for (let index = first; index < last; ++index) {
      const element = this.row(index);
      element.style.transform = `translateY(${index * this.rowHeight}px)`;
      rows.push(element);
    }
    this.space.replaceChildren(...rows);
    if (focused !== undefined) {
      rows.flatMap((row) => [...row.querySelectorAll<HTMLElement>('[data-focus]')])
          .find((element) => element.dataset.focus === focused)?.focus({preventScroll: true});
    }
  }
}
