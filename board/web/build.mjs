// Bundles src/ into one HTML file, by default ../page.html: the same bytes for the same sources.

import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(here, '..', 'page.html');
const largest = 300 * 1024;

const read = (...parts) => readFileSync(join(here, ...parts), 'utf8');

async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, 'src', entry)],
    bundle: true,
    minify: true,
    write: false,
    target: 'es2021',
    format: 'iife',
    legalComments: 'none',
    charset: 'utf8',
    absWorkingDir: here,
  });
  return result.outputFiles[0].text.trim();
}

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

function licences() {
  const {name, version, license} = JSON.parse(read('node_modules', 'uplot', 'package.json'));
  return `rondo: Apache-2.0\n\n${name} ${version}: ${license}\n\n${read('node_modules', 'uplot', 'LICENSE').trim()}`;
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

const style = await bundle('style.css');
const script = `addEventListener('DOMContentLoaded',()=>{${(await bundle('main.ts')).replaceAll('</script', '<\\/script')}\n})`;
// Only this script and this style run: a name in the data that got into the markup would do nothing.
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const parts = {POLICY: policy, STYLE: style, SCRIPT: script, LICENCES: escaped(licences())};
const page = read('src', 'index.html').replace(/@(POLICY|STYLE|SCRIPT|LICENCES)@/g, (_, part) => parts[part]);

if (Buffer.byteLength(page) > largest) {
  console.error(`the page has ${Buffer.byteLength(page)} bytes; at most ${largest} are allowed`);
  process.exit(1);
}
writeFileSync(output, page);
console.log(`${output}: ${Buffer.byteLength(page)} bytes`);
