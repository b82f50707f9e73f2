// A colour for each run, kept while the page is open. Hues that people with any colour vision tell
// apart (Okabe and Ito 2008, "Color Universal Design"), darkened or lightened for the background;
// when all are taken, the line is dashed.

const light = ['#0072b2', '#d55e00', '#00855f', '#b0508a', '#b37700', '#2f96c8', '#4d4d4d'];
const dark = ['#5aa9e6', '#ff8a4c', '#35c29a', '#e08cc0', '#e6b23c', '#8fd3f4', '#b8bcc2'];
const dashes = [[], [7, 4], [2, 3]];

const slots = new Map<string, number>();

function slotOf(id: string): number {
  let slot = slots.get(id);
  if (slot === undefined) {
    slot = slots.size;
    slots.set(id, slot);
  }
  return slot;
}

/** Gives the runs that are shown the first colours that are free. */
export function assignColors(ids: string[]): void {
  const shown = new Set(ids);
  for (const id of [...slots.keys()]) {
    if (!shown.has(id)) {
      slots.delete(id);
    }
  }
  const taken = new Set(slots.values());
  let next = 0;
  for (const id of ids) {
    if (!slots.has(id)) {
      while (taken.has(next)) {
        ++next;
      }
      taken.add(next);
      slots.set(id, next);
    }
  }
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
}

export function colorAt(slot: number): string {
  const palette = isDark() ? dark : light;
  return palette[slot % palette.length];
}

export function colorOf(id: string): string {
  return colorAt(slotOf(id));
}

export function dashOf(id: string): number[] {
  return dashes[Math.floor(slotOf(id) / light.length) % dashes.length];
}

export function withAlpha(color: string, alpha: number): string {
  return color + Math.round(alpha * 255).toString(16).padStart(2, '0');
}

/** From nothing to much, in one hue. */
export function heat(share: number): string {
  const t = Math.min(Math.max(share, 0), 1) ** 0.6;
  const [from, to] = isDark() ? [[26, 29, 32], [126, 200, 255]] : [[255, 255, 255], [8, 81, 140]];
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * t)).join(',')})`;
}

/** A colour of the style sheet. */
export function theme(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
