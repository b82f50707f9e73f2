// Elements from code. Names of runs and metrics are hostile: text is only ever text here, and the
// page has no place that reads markup from data.

type Child = Node | string | number | null | undefined | false;

type Props = Record<string, unknown>;

function setProps(element: Element, props: Props): void {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (key.startsWith('on')) {
      element.addEventListener(key.slice(2), value as EventListener);
    } else if (key === 'style') {
      Object.assign((element as HTMLElement).style, value);
    } else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'open') {
      (element as unknown as Props)[key] = value;
    } else {
      element.setAttribute(key, value === true ? '' : String(value));
    }
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

/** An HTML element. `onclick` and the like are listeners, `style` is an object. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
    tag: Tag, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  append(element, children);
  setProps(element, props);
  return element;
}

/** An SVG element. */
export function s<Tag extends keyof SVGElementTagNameMap>(
    tag: Tag, props: Props = {}, ...children: Child[]): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  append(element, children);
  setProps(element, props);
  return element;
}

export function button(text: string, onclick: () => void, props: Props = {}): HTMLButtonElement {
  return h('button', {type: 'button', onclick, ...props}, text);
}

/** A choice; `options` are values with their texts. */
export function select(label: string, options: [string, string][], value: string,
                       onchange: (value: string) => void): HTMLLabelElement {
  const list = h('select', {}, ...options.map(([id, text]) => h('option', {value: id}, text)));
  list.value = value;
  list.addEventListener('change', () => onchange(list.value));
  return h('label', {class: 'field'}, h('span', {}, label), list);
}

export function check(label: string, value: boolean, onchange: (value: boolean) => void,
                      title?: string): HTMLLabelElement {
  const box = h('input', {type: 'checkbox', checked: value});
  box.addEventListener('change', () => onchange(box.checked));
  return h('label', {class: 'check', title}, box, h('span', {}, label));
}

/** A field for a regular expression; a wrong one is marked and changes nothing. */
export function regexField(label: string, placeholder: string, value: string,
                           onchange: (value: string) => void, id?: string): HTMLInputElement {
  const field = h('input', {
    type: 'search', placeholder, 'aria-label': label, title: label, spellcheck: 'false', autocomplete: 'off', id,
  });
  field.value = value;
  field.addEventListener('input', () => {
    const isRegex = regexOf(field.value) !== null;
    field.classList.toggle('wrong', !isRegex);
    field.setAttribute('aria-invalid', String(!isRegex));
    if (isRegex) {
      onchange(field.value);
    }
  });
  return field;
}

/** Null for what is no regular expression. */
export function regexOf(text: string): RegExp | null {
  try {
    return new RegExp(text, 'i');
  } catch {
    return null;
  }
}

export function link(text: Child, href: string, props: Props = {}): HTMLAnchorElement {
  return h('a', {href, ...props}, text);
}

/** Offers a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], {type}));
  h('a', {href: url, download: name.replace(/[^\w.-]+/g, '_')}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Calls at most once a frame. */
export function perFrame(call: () => void): () => void {
  let isDue = false;
  return () => {
    if (!isDue) {
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        call();
      });
    }
  };
}

/** Calls once nothing asked for so long. */
export function settled(ms: number, call: () => void): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = window.setTimeout(call, ms);
  };
}

/** Calls with elements that come near to what is seen, or leave it. */
export function nearness(call: (element: HTMLElement, isNear: boolean) => void): IntersectionObserver {
  const margin = {rootMargin: '400px', scrollMargin: '400px'};  // the latter: in what scrolls inside the page
  return new IntersectionObserver((entries) => {
    entries.forEach((entry) => call(entry.target as HTMLElement, entry.isIntersecting));
  }, margin);
}
