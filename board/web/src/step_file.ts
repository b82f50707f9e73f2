// The files of a traced step: its report (`<key>.json`), its program and plan as text (`<key>.txt`,
// written by `to_text` of `tracing/program` and `tracing/plan`), and the trace of its operators.

export interface StepReport {
  mode: string;
  reason: string | null;
  guards: {read: string, answer: string}[];
  variant_of: string | null;
  undone: number;
  eager_runs: number;
  eager_s: number;
  share_of_time: number;
  operators_recorded: number;
  operators_replayed: number;
  passes: Record<string, number>;
  adopted_operators: Record<string, number>;
  captured_bytes: number;
  arena_bytes: number;
  capture_s: number;
  build_s: number;
  verify_s: number;
  replays: number;
}

export interface Instruction {
  op: string;
  module: string;
  text: string;
  lowering: string;
  source: string;
  seconds: number | null;
  bytes: number;  // of its results in the arena, or of all that it touches where it was timed
}

/** A part of the arena, in use from one instruction to another. */
export interface Block {
  offset: number;
  bytes: number;
  first: number;
  last: number;
}

export interface Program {
  instructions: Instruction[];
  arena: number;
  blocks: Block[];
}

const lowerings = ['own', 'out', 'in place', 'guard', 'adopting', 'copying'];

/** A report that lacks keys, or has others, still shows. */
export function reportOf(answer: Record<string, unknown>): StepReport {
  const none = {
    mode: 'traced', reason: null, guards: [], variant_of: null, undone: 0, eager_runs: 0, eager_s: 0, share_of_time: 0,
    operators_recorded: 0, operators_replayed: 0, passes: {}, adopted_operators: {}, captured_bytes: 0, arena_bytes: 0,
    capture_s: 0, build_s: 0, verify_s: 0, replays: 0,
  };
  return {...none, ...answer} as StepReport;
}

export function programOf(text: string): Program {
  const program: Program = {instructions: [], arena: 0, blocks: []};
  const byText = new Map<string, Instruction>();
  let section = '';
  let module = '';
  for (const line of text.split('\n')) {
    if (/^\w/.test(line)) {
      section = line.split(/[ (]/)[0];
    } else if (section === 'instructions' && line.startsWith('  # ')) {
      module = line.slice(4).replace(/^the step, /, '').replace(/ \(\w+\)$/, '');
    } else if (section === 'instructions' && line.trim() !== '') {
      const shown = line.trim();
      const op = /(?:^|= )([\w]+::[\w.]+)\(/.exec(shown)?.[1] ?? shown;
      const instruction = {op, module, text: shown, lowering: 'view', source: '', seconds: null, bytes: 0};
      program.instructions.push(instruction);
      byText.set(bare(shown), instruction);
    } else if (section === 'plan') {
      planLine(line, program, byText);
    }
  }
  for (const block of program.blocks) {
    const maker = program.instructions[block.first];
    if (maker !== undefined) {
      maker.bytes += block.bytes;
    }
  }
  return program;
}

/** Without what the program notes behind an instruction: "!%3" for what it writes. */
function bare(text: string): string {
  return text.replace(/ !.*$/, '');
}

function planLine(line: string, program: Program, byText: Map<string, Instruction>): void {
  const arena = /^  arena: (\d+) bytes/.exec(line);
  const block = /^  block at (\d+): (\d+) bytes, instructions (\d+) to (\d+)$/.exec(line);
  if (arena !== null) {
    program.arena = Number(arena[1]);
  } else if (block !== null) {
    const [offset, bytes, first, last] = block.slice(1).map(Number);
    program.blocks.push({offset, bytes, first, last});
  } else {
    const lowering = lowerings.find((one) => line.startsWith(`  ${one.padEnd(10)}`));
    const instruction = lowering === undefined ? undefined : byText.get(bare(line.slice(12).trim()));
    if (instruction !== undefined && lowering !== undefined) {
      instruction.lowering = lowering;
    }
  }
}

interface Event {
  name: string;
  cat: string;
  dur: number;
  args?: {instruction?: string, line?: string, bytes?: number};
}

/** Instructions with their times, in the order in which they run. */
export function timedInstructions(trace: {traceEvents: unknown[]}): Instruction[] {
  return (trace.traceEvents as Event[]).filter((event) => typeof event.dur === 'number').map((event) => ({
    op: event.name, module: event.cat, text: event.args?.instruction ?? event.name, lowering: '', source: event.args?.line ?? '',
    seconds: event.dur * 1e-6, bytes: event.args?.bytes ?? 0,
  }));
}

/** forward, backward, update, or a hook. */
export function phaseOf(module: string): 'forward' | 'backward' | 'update' | 'hook' {
  const phase = module.split(' ')[0];
  return phase === 'forward' || phase === 'backward' || phase === 'update' ? phase : 'hook';
}
