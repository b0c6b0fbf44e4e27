import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { HAVE_EFFECTS, PROGRAM } from '../../scripts/bundle.mjs';
import { sharedFolder } from '../support/lifetime.ts';
import { cruiseSource, ROOT, unfitForBrowsers, violations } from './cruise.ts';
import { RULES } from './import-rules.ts';

describe('the modules of src/', () => {
  let found: Awaited<ReturnType<typeof cruiseSource>>;
  beforeAll(async () => {
    found = await cruiseSource(ROOT);
  }, 240_000);

  it('import only what the rules allow', () => {
    expect(violations(found)).toEqual([]);
  });

  it('import nothing of Node where the console reaches them, also through others', () => {
    expect(unfitForBrowsers(found)).toEqual([]);
  });

  it('are read with type imports and packages, and every import is resolved', () => {
    const { modules } = found;
    const targetsOf = (source: string) =>
      modules.find((module) => module.source === source)?.dependencies.map((to) => to.resolved) ?? [];
    expect(modules.filter(({ source }) => source.startsWith('src/')).length).toBeGreaterThan(30);
    expect(targetsOf('src/conversation/state/roster.ts')).toContain('src/conversation/log/entry.ts'); // a type import
    expect(targetsOf('src/kernel/ids.ts').join()).toContain('node_modules/ulid/');
    const unresolved = modules.flatMap((module) => module.dependencies.filter((to) => to.couldNotResolve));
    expect(unresolved.map((to) => to.module)).toEqual([]);
  });

  it('that are imported for their effect alone are known to the bundler, which leaves out others', async () => {
    const source = join(ROOT, 'src');
    const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith('.ts'));
    const imported: string[] = [];
    for (const file of files) {
      const text = await readFile(join(source, file), 'utf8');
      for (const [, path = ''] of text.matchAll(/^import '(\..+)';$/gm))
        imported.push(join(dirname(file), path));
    }
    const entries = Object.values(PROGRAM);
    expect([...entries, ...imported].sort()).toEqual([...HAVE_EFFECTS].sort());
  });
});

/** For each rule one file that violates this rule and no other: [path, import]. */
const VIOLATIONS: Readonly<Record<string, readonly [string, string]>> = {
  'module-kernel': ['src/kernel/a.ts', "import '../conversation/index.ts';"],
  'module-conversation': ['src/conversation/a.ts', "import type { Marker } from '../agents/index.ts';"],
  'module-agents': ['src/agents/a.ts', "import '../bus/index.ts';"],
  'module-bus': ['src/bus/a.ts', "import '../persistence/index.ts';"],
  'module-persistence': ['src/persistence/jsonl/a.ts', "import '../../agents/model-port.ts';"],
  'module-models': ['src/models/http/a.ts', "import '../../bus/port.ts';"],
  'module-tools': ['src/tools/builtin/a.ts', "import '../../persistence/port.ts';"],
  'module-config': ['src/config/a.ts', "import '../agents/index.ts';"],
  'module-gateway': ['src/gateway/a.ts', "import '../daemon/index.ts';"],
  'module-client': ['src/client/a.ts', "import '../daemon/index.ts';"],
  'module-traces': ['src/traces/a.ts', "import '../persistence/index.ts';"],
  'module-search': ['src/search/a.ts', "import '../persistence/index.ts';"],
  'module-daemon': ['src/daemon/a.ts', "import '../cli/index.ts';"],
  'module-console': ['src/console/a.tsx', "import '../bus/index.ts';"],
  'module-testing': ['src/testing/a.ts', "import '../cli/index.ts';"],
  'module-acp': ['src/acp/a.ts', "import '../agents/index.ts';"],
  'module-cli': ['src/cli/a.ts', "import '../bus/index.ts';"],
  'unknown-module': ['src/helpers/a.ts', "import '../kernel/index.ts';"],
  'package-without-cli': ['src/index.ts', "import './cli/index.ts';"],
  'module-through-its-index': ['src/agents/b.ts', "import '../kernel/index-of.ts';"],
  'adapter-through-its-index': ['src/persistence/memory/a.ts', "import '../jsonl/inner.ts';"],
  'adapter-through-its-index-from-outside': [
    'src/daemon/compose/compose.ts',
    "import '../../models/http/inner.ts';",
  ],
  'module-does-not-import-its-adapters': ['src/bus/b.ts', "import './nats/index.ts';"],
  'only-compose-names-adapters': ['src/daemon/b.ts', "import '../models/http/index.ts';"],
  'room-observe': ['src/daemon/observe/v.ts', "import '../conversations/a.ts';"],
  'room-feed': ['src/daemon/feed/v.ts', "import '../api/a.ts';"],
  'room-tools': ['src/daemon/tools/v.ts', "import '../team/a.ts';"],
  'room-team': ['src/daemon/team/v.ts', "import '../conversations/a.ts';"],
  'room-what-if': ['src/daemon/what-if/v.ts', "import '../conversations/a.ts';"],
  'room-conversations': ['src/daemon/conversations/v.ts', "import '../daemon.ts';"],
  'room-ingress': ['src/daemon/ingress/v.ts', "import '../api/a.ts';"],
  'room-files': ['src/daemon/files/v.ts', "import '../api/a.ts';"],
  'room-reload': ['src/daemon/reload/v.ts', "import '../api/a.ts';"],
  'room-api': ['src/daemon/api/v.ts', "import '../cluster/a.ts';"],
  'room-cluster': ['src/daemon/cluster/v.ts', "import '../compose/a.ts';"],
  'room-compose': ['src/daemon/compose/v.ts', "import '../offline/a.ts';"],
  'room-offline': ['src/daemon/offline/v.ts', "import '../daemon.ts';"],
  'unknown-room': ['src/daemon/helpers/a.ts', "import '../daemon.ts';"],
  'vendor-a-a-js-sdk': ['src/gateway/ag-ui/a.ts', "import '@a2a-js/sdk/server';"],
  'vendor-agentclientprotocol-sdk': ['src/cli/z.ts', "import '@agentclientprotocol/sdk';"],
  'vendor-ag-ui-core': ['src/gateway/j.ts', "import type { Message } from '@ag-ui/core';"],
  'vendor-ag-ui-encoder': ['src/gateway/k.ts', "import '@ag-ui/encoder';"],
  'vendor-hono-node-server': ['src/daemon/c.ts', "import '@hono/node-server';"],
  'vendor-modelcontextprotocol-client': ['src/tools/builtin/b.ts', "import '@modelcontextprotocol/client';"],
  'vendor-modelcontextprotocol-server': ['src/tools/mcp/v.ts', "import '@modelcontextprotocol/server';"],
  'vendor-opentelemetry-api': ['src/daemon/o.ts', "import '@opentelemetry/api';"],
  'vendor-opentelemetry-exporter-trace-otlp-proto': [
    'src/daemon/p.ts',
    "import '@opentelemetry/exporter-trace-otlp-proto';",
  ],
  'vendor-preact-signals': ['src/gateway/d.ts', "import '@preact/signals';"],
  'vendor-tanstack-virtual-core': ['src/gateway/e.ts', "import '@tanstack/virtual-core';"],
  'vendor-ajv': ['src/tools/h.ts', "import { Ajv } from 'ajv';"],
  'vendor-ajv-formats': ['src/tools/i.ts', "import 'ajv-formats';"],
  'vendor-commander': ['src/daemon/d.ts', "import 'commander';"],
  'vendor-diff': ['src/console/d.ts', "import { structuredPatch } from 'diff';"],
  'vendor-dompurify': ['src/gateway/f.ts', "import 'dompurify';"],
  'vendor-esbuild': ['src/daemon/u.ts', "import { build } from 'esbuild';"],
  'vendor-eventsource-parser': ['src/gateway/l.ts', "import 'eventsource-parser';"],
  'vendor-fs-native-extensions': ['src/daemon/e.ts', "import 'fs-native-extensions';"],
  'vendor-highlight-js': ['src/gateway/g.ts', "import 'highlight.js/lib/core';"],
  'vendor-hono': ['src/daemon/f.ts', "import 'hono';"],
  'vendor-file-type': ['src/gateway/blob-a.ts', "import 'file-type';"],
  'vendor-image-size': ['src/gateway/blob-b.ts', "import { imageSize } from 'image-size';"],
  'vendor-ipaddr-js': ['src/daemon/i.ts', "import 'ipaddr.js';"],
  'vendor-lowdb': ['src/daemon/g.ts', "import { JSONFile } from 'lowdb/node';"],
  'vendor-markdown-it': ['src/gateway/h.ts', "import 'markdown-it';"],
  'vendor-nats': ['src/client/b.ts', "import type { Msg } from 'nats';"],
  'vendor-nkeys-js': ['src/bus/nats/managed/n.ts', "import 'nkeys.js';"],
  'vendor-node-sqlite-wasm': ['src/daemon/s.ts', "import 'node-sqlite3-wasm';"],
  'vendor-openai': ['src/agents/c.ts', "import 'openai';"],
  'vendor-picocolors': ['src/client/c.ts', "import 'picocolors';"],
  'vendor-pino': ['src/gateway/b.ts', "import 'pino';"],
  'vendor-pino-pretty': ['src/gateway/c.ts', "import 'pino-pretty';"],
  'vendor-preact': ['src/gateway/i.ts', "import 'preact/hooks';"],
  'vendor-re-js': ['src/config/r.ts', "import 're2js';"],
  'vendor-shell-quote': ['src/config/e.ts', "import 'shell-quote';"],
  'vendor-ulid': ['src/conversation/b.ts', "import 'ulid';"],
  'vendor-yaml': ['src/agents/d.ts', "import 'yaml';"],
  'vendor-string-width': ['src/client/e.ts', "import 'string-width';"],
  'vendor-yocto-spinner': ['src/client/d.ts', "import 'yocto-spinner';"],
  'vendor-zod': ['src/kernel/b.ts', "import 'zod';"],
  'unknown-vendor': ['src/agents/e.ts', "import 'tsx';"],
  'no-cycles': ['src/kernel/c.ts', "import type { D } from './d.ts';"],
  'console-without-node': ['src/console/b.ts', "import 'node:fs';"],
  'console-takes-types-of-the-contract': ['src/console/types.ts', "import '../bus/contract.ts';"],
  'core-without-node': ['src/conversation/c.ts', "import { randomUUID } from 'node:crypto';"],
};

/** Files that these import, and similar imports that are allowed. */
const ALLOWED: readonly (readonly [string, string])[] = [
  ...['kernel', 'conversation', 'agents', 'bus', 'persistence', 'cli', 'daemon'].map(
    (module) => [`src/${module}/index.ts`, 'export type Marker = string;'] as const,
  ),
  ...['api', 'cluster', 'compose', 'conversations', 'offline', 'team'].map(
    (room) => [`src/daemon/${room}/a.ts`, 'export {};'] as const,
  ),
  ['src/daemon/daemon.ts', "import './conversations/a.ts';"],
  ['src/kernel/index-of.ts', 'export {};'],
  ['src/kernel/d.ts', "import type { C } from './c.ts';\nexport type D = 1;"],
  ['src/agents/model-port.ts', 'export {};'],
  ['src/conversation/view/view-diff.ts', "import '../log/typed.ts';\nimport '../log/words.ts';"],
  ['src/conversation/log/typed.ts', "import type { Marker } from '../../kernel/index.ts';"],
  ['src/conversation/log/words.ts', "import '../../kernel/index.ts';"],
  [
    'src/console/c.ts',
    "import '../conversation/view/view-diff.ts';\nimport '../conversation/index.ts';\nimport 'preact';",
  ],
  ['src/bus/port.ts', 'export {};'],
  ['src/bus/contract.ts', 'export type AnswerOf = string;'],
  ['src/console/e.ts', "import type { AnswerOf } from '../bus/contract.ts';"],
  ['src/persistence/port.ts', 'export {};'],
  ['src/persistence/jsonl/inner.ts', "import '../port.ts';"],
  ['src/persistence/jsonl/index.ts', "import './inner.ts';"],
  ['src/models/http/inner.ts', "import 'openai';\nimport '../../agents/model-port.ts';"],
  ['src/models/http/index.ts', "import './inner.ts';"],
  ['src/bus/nats/index.ts', "import './connection/connection.ts';"],
  ['src/bus/nats/connection/connection.ts', "import 'nats';\nimport '../../port.ts';\nimport 'node:fs';"],
  ['src/bus/nats/managed/index.ts', "import '../connection/connection.ts';\nimport 'fs-native-extensions';"],
];

describe('the import rules', () => {
  const folder = sharedFolder();
  let found: string[] = [];
  let unfit: string[] = [];

  beforeAll(async () => {
    for (const [path, text] of [...ALLOWED, ...Object.values(VIOLATIONS)]) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), `${text}\n`);
    }
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const cruised = await cruiseSource(folder);
    found = violations(cruised);
    unfit = unfitForBrowsers(cruised);
  });

  it('each have an example', () => {
    expect(Object.keys(VIOLATIONS).sort()).toEqual(RULES.map((rule) => rule.name).sort());
  });

  it.each(Object.entries(VIOLATIONS))('report a violation of %s', (rule, [path]) => {
    expect(found.filter((line) => line.startsWith(`${rule}: ${path} → `))).toHaveLength(1);
  });

  it('report what no browser can import behind the modules that the console imports', () => {
    expect(unfit).toContain('src/conversation/log/words.ts → src/kernel/index.ts');
    expect(unfit).toContain('src/console/b.ts → fs');
    expect(unfit.filter((fault) => fault.includes('typed'))).toEqual([]);
  });

  it('report no allowed import', () => {
    const violating = new Set(Object.values(VIOLATIONS).map(([path]) => path));
    violating.add('src/kernel/d.ts'); // the other half of the cycle
    const others = found.filter((line) => !violating.has(line.split(': ')[1]?.split(' → ')[0] ?? ''));
    expect(others).toEqual([]);
  });
});
