import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';

/**
 * What tests start, and its end. `const project = shared(() => startProject({ … }))` at the top of a file or a `describe`: hooks
 * and tests use `project`, which is closed after them. `const { client } = project` is allowed there, too.
 */

export type Closable = { close(): unknown } | { stop(): unknown };

const end = (made: Closable | undefined): unknown => made && ('close' in made ? made.close() : made.stop());

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

/** Closes after each test, last in, first out, what the test has added. */
export function closing(): <T extends Closable>(made: T) => T {
  const open: Closable[] = [];
  afterEach(async () => {
    for (let made = open.pop(); made; made = open.pop()) await end(made);
  });
  return (made) => {
    open.push(made);
    return made;
  };
}

/** Before it has started, its members that are objects can be named, and are read when they are used. */
function later<T extends object>(current: () => T | undefined): T {
  const started = (key: PropertyKey): T => {
    const made = current();
    if (!made) throw new Error(`"${String(key)}" is read before the hooks of the test have run`);
    return made;
  };
  return new Proxy({} as T, {
    get(_, key) {
      const made = current();
      if (!made && typeof key === 'string') return later(() => Reflect.get(started(key), key) as object);
      const value = Reflect.get(started(key), key);
      return typeof value === 'function' ? value.bind(made) : value;
    },
    set: (_, key, value) => Reflect.set(started(key), key, value),
  });
}
