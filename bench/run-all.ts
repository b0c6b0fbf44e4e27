import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/**
 * Runs every benchmark, one after another and each in a process of its own, and sums up their ratios as a table.
 * Nothing here fails for being slow: a busy machine is no fault of the code. What misses its target is marked.
 *
 *     npm run bench
 */

const BENCHMARKS = [
  'append',
  'reopen',
  'resume',
  'turn',
  'cache',
  'bytes',
  'view',
  'files',
  'team',
  'recall',
  'waiting',
  'startup',
  'command-start',
  'jetstream',
  'readers',
  'sharing',
  'e2e',
  'live',
  'list',
  'console',
];

interface Figure {
  readonly bench: string;
  readonly ratio?: number;
  readonly wanted?: string;
  readonly [name: string]: unknown;
}

async function run(name: string): Promise<Figure[]> {
  const path = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const figures: Figure[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(line);
    figures.push(JSON.parse(line));
  }
  const [code] = await exited;
  if (code !== 0) throw new Error(`bench/${name}.ts ended with ${code}`);
  return figures;
}

/** `>= 0.8` and `<= 2` are targets; other words are not. */
function verdict({ ratio, wanted }: Figure): string {
  const target = /^([<>])= (\d+(?:\.\d+)?)$/.exec(wanted ?? '');
  if (!target || ratio === undefined) return '';
  const met = target[1] === '<' ? ratio <= Number(target[2]) : ratio >= Number(target[2]);
  return met ? 'met' : 'MISSED';
}

const figures: Figure[] = [];
for (const name of BENCHMARKS) figures.push(...(await run(name)));

console.log('');
for (const figure of figures) {
  const { bench, ratio, wanted = '' } = figure;
  const what = [
    bench,
    figure.text ??
      figure.window ??
      figure.agents ??
      figure.entries ??
      figure.lengths ??
      figure.conversations ??
      figure.callers ??
      '',
  ].join(' ');
  console.log(`${what.padEnd(34)}${String(ratio ?? '').padStart(7)}  ${wanted.padEnd(12)}${verdict(figure)}`);
}
