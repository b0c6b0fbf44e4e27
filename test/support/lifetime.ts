import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, onTestFinished } from 'vitest';

/**
 * What tests start, and its end. `const project = shared(() => startProject({ … }))` at the top of a file or a `describe`: hooks
 * and tests use `project`, which is closed after them. `const { client } = project` is allowed there, too.
 */

export type Closable = { close(): unknown } | { stop(): unknown } | { end(): unknown };

function end(made: Closable | undefined): unknown {
  if (!made) return;
  if ('close' in made) return made.close();
  return 'stop' in made ? made.stop() : made.end();
}

/** Started before the tests of this file or `describe`, and closed after them. */
export function shared<T extends Closable>(start: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeAll(async () => {
    made = await start();
  });
  afterAll(() => end(made));
  return later(() => made);
}

/** Started before each test of this file or `describe`, and closed after it. */
export function perTest<T extends Closable>(start: () => T | Promise<T>): T {
  let made: T | undefined;
  beforeEach(async () => {
    made = undefined;
    made = await start();
  });
  afterEach(() => end(made));
  return later(() => made);
}

/** Closes it when the test that runs is over, after what the test has started later. */
export function untilTestEnds<T extends Closable>(made: T): T {
  onTestFinished(async () => {
    await end(made);
  });
  return made;
}

/** The path of a folder that is empty before each test of this file or `describe`, and deleted after it. */
export function folderPerTest(): string {
  const path = newPath();
  beforeEach(() => mkdir(path, { mode: 0o700 }));
  afterEach(() => remove(path));
  return path;
}

/** The path of a folder that the tests of this file or `describe` share. */
export function sharedFolder(): string {
  const path = newPath();
  beforeAll(() => mkdir(path, { mode: 0o700 }));
  afterAll(() => remove(path));
  return path;
}

/** A folder of these files, deleted when the test that runs is over. */
export async function newFolder(files: Readonly<Record<string, string | Uint8Array>> = {}): Promise<string> {
  const folder = newPath();
  onTestFinished(() => remove(folder));
  await mkdir(folder, { mode: 0o700 });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

/** Ends a process that runs, and waits until it has ended. */
export async function endChild(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

const newPath = () => join(realpathSync(tmpdir()), `parley-test-${randomUUID().slice(0, 8)}`);
const remove = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 5 });

/** Before it has started, its members that are objects or functions can be named, and are read when they are used. */
function later<T extends object>(current: () => T | undefined): T {
  const read = (key: PropertyKey) => {
    const made = current();
    if (!made) throw new Error(`"${String(key)}" is read before the hooks of the test have run`);
    const value = Reflect.get(made, key);
    return typeof value === 'function' ? value.bind(made) : value;
  };
  return new Proxy((() => undefined) as unknown as T, {
    get: (_, key) => (current() || typeof key === 'symbol' ? read(key) : later(() => read(key))),
    set: (_, key, value) => Reflect.set(current() ?? {}, key, value),
    apply: (_, self, args) => Reflect.apply(current() as unknown as () => unknown, self, args),
  });
}
