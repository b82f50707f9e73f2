// Numbers, times and sizes for people.

/** As a plain text: 0.001234, 1.2e-7, 12 345. */
export function number(value: number | string | null | undefined): string {
  if (value === null || value === undefined) {
    return '–';
  }
  if (typeof value === 'string' || !Number.isFinite(value)) {
    return String(value);
  }
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) {
    return value.toExponential(2).replace('e+', 'e');
  }
  if (Number.isInteger(value)) {
    return count(value);
  }
  return size >= 1000 ? value.toFixed(1) : String(Number(value.toPrecision(4)));
}

/** With a thin space between thousands. */
export function count(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009');
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) {
    return '–';
  }
  if (seconds < 60) {
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return `${minutes} min ${Math.round(seconds % 60)} s`;
  }
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A time of operators. */
export function shortTime(seconds: number): string {
  const us = seconds * 1e6;
  if (us >= 1e6) {
    return `${seconds.toFixed(2)} s`;
  }
  return us >= 1e3 ? `${(us / 1e3).toFixed(1)} ms` : `${us.toFixed(us < 10 ? 2 : 1)} µs`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** A moment, in the reader's time zone. */
export function moment(seconds: number): string {
  const date = new Date(seconds * 1000);
  const two = (part: number) => String(part).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
      `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** "+1.2 %"; null where there is nothing to compare. */
export function difference(value: unknown, base: unknown): {text: string, change: number} | null {
  if (typeof value !== 'number' || typeof base !== 'number' || !Number.isFinite(value) ||
      !Number.isFinite(base) || base === 0) {
    return null;
  }
  const change = (value - base) / Math.abs(base);
  const per = 100 * change;
  const digits = Math.abs(per) >= 100 ? 0 : Math.abs(per) >= 10 ? 1 : 2;
  return {text: `${change > 0 ? '+' : change < 0 ? '−' : '±'}${Math.abs(per).toFixed(digits)} %`, change};
}

/** The end of a key path that tells it from the other keys: "batch_size", "AdamW.lr". */
export function shortKey(key: string, keys: string[]): string {
  const parts = key.split('.');
  for (let length = 1; length < parts.length; ++length) {
    const end = parts.slice(-length).join('.');
    if (keys.filter((one) => one === end || one.endsWith(`.${end}`)).length <= 1) {
      return end;
    }
  }
  return key;
}

/** A field of a CSV file. Texts that a spreadsheet would take for a formula get an apostrophe. */
export function csvField(value: string | number | null): string {
  if (typeof value === 'number') {
    return String(value);
  }
  const text = value ?? '';
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}
