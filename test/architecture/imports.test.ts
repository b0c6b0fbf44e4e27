import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cruiseSource, ROOT, violations } from './cruise.ts';
import { RULES } from './import-rules.ts';

describe('the rooms of src/', () => {
  it('import only what they may', async () => {
    const result = await cruiseSource(ROOT);
    expect(violations(result)).toEqual([]);
  });

  it('were read at all: files, type imports and packages, and every import was found', async () => {
    const { modules } = await cruiseSource(ROOT);
    const targetsOf = (source: string) =>
      modules.find((module) => module.source === source)?.dependencies.map((to) => to.resolved) ?? [];
    expect(modules.filter(({ source }) => source.startsWith('src/')).length).toBeGreaterThan(30);
    expect(targetsOf('src/conversation/state/roster.ts')).toContain('src/conversation/log/entry.ts'); // a type import
    expect(targetsOf('src/kernel/ids.ts').join()).toContain('node_modules/ulid/');
    const unresolved = modules.flatMap((module) => module.dependencies.filter((to) => to.couldNotResolve));
    expect(unresolved.map((to) => to.module)).toEqual([]);
  });
});

/** By rule, one file that breaks it and nothing else: [path, import]. */
const BREAKING: Readonly<Record<string, readonly [string, string]>> = {
  'room-kernel': ['src/kernel/a.ts', "import '../conversation/index.ts';"],
  'room-conversation': ['src/conversation/a.ts', "import type { Marker } from '../agents/index.ts';"],
  'room-agents': ['src/agents/a.ts', "import '../bus/index.ts';"],
  'room-bus': ['src/bus/a.ts', "import '../persistence/index.ts';"],
  'room-persistence': ['src/persistence/jsonl/a.ts', "import '../../agents/model-port.ts';"],
  'room-models': ['src/models/openai/a.ts', "import '../../bus/port.ts';"],
  'room-tools': ['src/tools/builtin/a.ts', "import '../../persistence/port.ts';"],
  'room-config': ['src/config/a.ts', "import '../agents/index.ts';"],
  'room-gateway': ['src/gateway/a.ts', "import '../daemon/index.ts';"],
  'room-client': ['src/client/a.ts', "import '../daemon/index.ts';"],
  'room-daemon': ['src/daemon/a.ts', "import '../cli/index.ts';"],
  'room-chaos': ['src/chaos/a.ts', "import '../daemon/index.ts';"],
  'room-console': ['src/console/a.tsx', "import '../bus/index.ts';"],
  'room-cli': ['src/cli/a.ts', "import '../bus/index.ts';"],
  'unknown-room': ['src/helpers/a.ts', "import '../kernel/index.ts';"],
  'room-of-the-package': ['src/index.ts', "import './cli/index.ts';"],
  'room-by-its-index': ['src/agents/b.ts', "import '../kernel/index-of.ts';"],
  'adapter-by-its-index': ['src/persistence/memory/a.ts', "import '../jsonl/inner.ts';"],
  'adapter-by-its-index-from-outside': [
    'src/daemon/compose/compose.ts',
    "import '../../models/openai/inner.ts';",
  ],
  'room-does-not-know-its-adapters': ['src/bus/b.ts', "import './nats/index.ts';"],
  'only-compose-names-adapters': ['src/daemon/b.ts', "import '../models/openai/index.ts';"],
  'vendor-a-a-js-sdk': ['src/gateway/ag-ui/a.ts', "import '@a2a-js/sdk/server';"],
  'vendor-ag-ui-core': ['src/gateway/j.ts', "import type { Message } from '@ag-ui/core';"],
  'vendor-ag-ui-encoder': ['src/gateway/k.ts', "import '@ag-ui/encoder';"],
  'vendor-hono-node-server': ['src/daemon/c.ts', "import '@hono/node-server';"],
  'vendor-modelcontextprotocol-sdk': ['src/tools/builtin/b.ts', "import '@modelcontextprotocol/sdk';"],
  'vendor-preact-signals': ['src/gateway/d.ts', "import '@preact/signals';"],
  'vendor-tanstack-virtual-core': ['src/gateway/e.ts', "import '@tanstack/virtual-core';"],
  'vendor-commander': ['src/daemon/d.ts', "import 'commander';"],
  'vendor-dompurify': ['src/gateway/f.ts', "import 'dompurify';"],
  'vendor-eventsource-parser': ['src/gateway/l.ts', "import 'eventsource-parser';"],
  'vendor-fs-native-extensions': ['src/daemon/e.ts', "import 'fs-native-extensions';"],
  'vendor-highlight-js': ['src/gateway/g.ts', "import 'highlight.js/lib/core';"],
  'vendor-hono': ['src/daemon/f.ts', "import 'hono';"],
  'vendor-lowdb': ['src/daemon/g.ts', "import { JSONFile } from 'lowdb/node';"],
  'vendor-markdown-it': ['src/gateway/h.ts', "import 'markdown-it';"],
  'vendor-nats': ['src/client/b.ts', "import type { Msg } from 'nats';"],
  'vendor-openai': ['src/agents/c.ts', "import 'openai';"],
  'vendor-picocolors': ['src/client/c.ts', "import 'picocolors';"],
  'vendor-pino': ['src/gateway/b.ts', "import 'pino';"],
  'vendor-pino-pretty': ['src/gateway/c.ts', "import 'pino-pretty';"],
  'vendor-preact': ['src/gateway/i.ts', "import 'preact/hooks';"],
  'vendor-shell-quote': ['src/config/e.ts', "import 'shell-quote';"],
  'vendor-ulid': ['src/conversation/b.ts', "import 'ulid';"],
  'vendor-yaml': ['src/agents/d.ts', "import 'yaml';"],
  'vendor-yocto-spinner': ['src/client/d.ts', "import 'yocto-spinner';"],
  'vendor-zod': ['src/kernel/b.ts', "import 'zod';"],
  'vendor-without-a-home': ['src/agents/e.ts', "import 'tsx';"],
  'no-cycles': ['src/kernel/c.ts', "import type { D } from './d.ts';"],
  'console-without-node': ['src/console/b.ts', "import 'node:fs';"],
  'core-without-node': ['src/conversation/c.ts', "import { randomUUID } from 'node:crypto';"],
};

/** What those import, and imports that are allowed though they look alike. */
const AROUND: readonly (readonly [string, string])[] = [
  ...['kernel', 'conversation', 'agents', 'bus', 'persistence', 'cli', 'daemon'].map(
    (room) => [`src/${room}/index.ts`, 'export type Marker = string;'] as const,
  ),
  ['src/kernel/index-of.ts', 'export {};'],
  ['src/kernel/d.ts', "import type { C } from './c.ts';\nexport type D = 1;"],
  ['src/agents/model-port.ts', 'export {};'],
  ['src/conversation/view/view-diff.ts', 'export {};'],
  [
    'src/console/c.ts',
    "import '../conversation/view/view-diff.ts';\nimport '../conversation/index.ts';\nimport 'preact';",
  ],
  ['src/bus/port.ts', 'export {};'],
  ['src/persistence/port.ts', 'export {};'],
  ['src/persistence/jsonl/inner.ts', "import '../port.ts';"],
  ['src/persistence/jsonl/index.ts', "import './inner.ts';"],
  ['src/models/openai/inner.ts', "import 'openai';\nimport '../../agents/model-port.ts';"],
  ['src/models/openai/index.ts', "import './inner.ts';"],
  ['src/bus/nats/index.ts', "import './connection/connection.ts';"],
  ['src/bus/nats/connection/connection.ts', "import 'nats';\nimport '../../port.ts';\nimport 'node:fs';"],
  ['src/bus/nats/managed/index.ts', "import '../connection/connection.ts';\nimport 'fs-native-extensions';"],
];

describe('the import rules', () => {
  let folder = '';
  let found: string[] = [];

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'parley-rooms-')));
    for (const [path, text] of [...AROUND, ...Object.values(BREAKING)]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), `${text}\n`);
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    found = violations(await cruiseSource(folder));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('have an example each', () => {
    expect(Object.keys(BREAKING).sort()).toEqual(RULES.map((rule) => rule.name).sort());
  });

  it.each(Object.entries(BREAKING))('notice %s', (rule, [path]) => {
    expect(found.filter((line) => line.startsWith(`${rule}: ${path} → `))).toHaveLength(1);
  });

  it('find no fault with what is allowed', () => {
    const blamed = new Set(Object.values(BREAKING).map(([path]) => path));
    blamed.add('src/kernel/d.ts'); // the other half of the cycle
    const others = found.filter((line) => !blamed.has(line.split(': ')[1]?.split(' → ')[0] ?? ''));
    expect(others).toEqual([]);
  });
});
