import type { IForbiddenRuleType, IRegularForbiddenRuleType } from 'dependency-cruiser';

/**
 * The import rules of `src/`, for dependency-cruiser. A module is a folder directly in `src/`.
 *
 * I1 A module imports only the modules that are listed for it. Type imports count.
 * I2 Other modules and adapters are imported through their `index.ts`. Exceptions: the file of a port, the contract of
 *    the verbs, the follower (for the gateway), the validator of JSON Schemas, the ranges of addresses, and single pure files for the console, to keep its bundle small.
 * I3 The files of a module do not import its adapters; in the daemon only `compose/` imports adapters.
 * I4 A package is imported in one folder, except those that two adapters need.
 * I5 No cycles, type imports included.
 * I6 The conversation core imports no Node module: no clock, no randomness, no files. Nor does the console.
 * I7 The console imports types alone of the contract of the verbs.
 * I8 A room of the daemon imports the rooms that are listed for it, and no file directly in `src/daemon/`, which joins the rooms.
 * I9 What the console reaches, also through `conversation`, imports at run time nothing of Node and not `kernel/index.ts`: else the
 *    console stays empty (`unfitForBrowsers`; no rule here, since a rule of reach would follow imports of types).
 */

interface Module {
  /** Names of modules that it may import. */
  readonly modules: readonly string[];
  /** Single files that it may import as well, as regular expressions. */
  readonly files?: readonly string[];
}

const AGENT_PORTS = String.raw`agents/[a-z]+-port\.ts$`;
const ALL_PORTS = String.raw`(?:agents|bus|persistence)/(?:port|contract|[a-z]+-port)\.ts$`;

/** I1: the encoders of dialects are pure; `explain` makes requests without a network. */
const DIALECTS = String.raw`models/dialects\.ts$`;

/** I2: coding agents are child processes like MCP servers. */
const CHILD_PROCESS = String.raw`tools/mcp/index\.ts$`;

/** I2: the gateway follows conversations as clients do. */
const FOLLOWER = String.raw`bus/follower\.ts$`;

/** I2: loading Ajv takes a tenth of a second, which commands do not need. */
const JSON_SCHEMA = String.raw`kernel/json-schema\.ts$`;

/** I2: most commands need no `ipaddr.js`. */
const PUBLIC_ADDRESS = String.raw`kernel/public-address\.ts$`;

/** I7 */
const CONTRACT = String.raw`bus/contract\.ts$`;

/** I2 */
const FOR_BROWSERS = String.raw`^src/(?:conversation/(?:text/line-diff|text/look-alikes|text/confusables|text/text|tools/shell-command|view/view-diff|log/call-id|log/feedback|log/finish-reason|log/model-failure|log/parts|log/server-asks|log/words|progress/live-text|progress/open-calls|progress/runs|state/answering|state/turn-rows|state/usage)|kernel/(?:hidden|json|text))\.ts$`;

/** I1 */
const MODULES: Readonly<Record<string, Module>> = {
  kernel: { modules: [] },
  conversation: { modules: ['kernel'] },
  agents: { modules: ['kernel', 'conversation'], files: [DIALECTS] },
  bus: { modules: ['kernel', 'conversation'] },
  persistence: { modules: ['kernel', 'conversation'] },
  models: { modules: ['kernel', 'conversation'], files: [AGENT_PORTS] },
  tools: { modules: ['kernel', 'conversation'], files: [AGENT_PORTS] },
  config: { modules: ['kernel', 'conversation'] },
  gateway: { modules: ['kernel', 'conversation'], files: [ALL_PORTS, FOLLOWER] },
  client: { modules: ['kernel', 'conversation', 'bus'] },
  traces: { modules: ['kernel', 'conversation'] },
  search: { modules: ['kernel', 'conversation'] },
  daemon: {
    modules: [
      'kernel',
      'conversation',
      'agents',
      'bus',
      'persistence',
      'models',
      'tools',
      'config',
      'gateway',
      'client',
      'traces',
      'search',
      'acp',
    ],
  },
  testing: {
    modules: [
      ...['kernel', 'conversation', 'agents', 'bus', 'persistence'],
      ...['models', 'tools', 'config', 'daemon'],
    ],
  },
  console: { modules: ['conversation'], files: [String.raw`kernel/(?:hidden|json)\.ts$`, CONTRACT] },
  cli: { modules: ['kernel', 'config', 'daemon', 'client', 'acp'] },
  acp: { modules: ['kernel', 'conversation', 'client'], files: [CHILD_PROCESS] },
};

/** I8: room of `src/daemon` → the rooms that it may import. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  observe: [],
  feed: [],
  tools: ['observe'],
  team: ['tools'],
  'what-if': ['team'],
  conversations: ['observe', 'tools', 'team'],
  ingress: ['observe', 'team', 'conversations'],
  reload: ['team', 'conversations'],
  files: ['team', 'ingress'],
  api: ['observe', 'team', 'what-if', 'conversations', 'ingress', 'reload', 'files'],
  cluster: ['observe', 'feed', 'conversations', 'ingress', 'api'],
  compose: ['observe', 'feed', 'team', 'cluster'],
  offline: ['team', 'conversations', 'compose', 'files'],
};

function roomRules(): Rule[] {
  return Object.entries(ROOMS).map(([name, rooms]) => ({
    name: `room-${name}`,
    comment: `I8: src/daemon/${name} may import ${rooms.length === 0 ? 'no other room' : rooms.join(', ')}`,
    from: { path: `^src/daemon/${name}/` },
    to: { path: '^src/daemon/', pathNot: `^src/daemon/(?:${[name, ...rooms].join('|')})/` },
  }));
}

/** Folders of adapters; each is imported through its `index.ts`. */
const ADAPTERS = 'src/(?:bus/nats/managed|bus/nats|persistence/[^/]+|models/[^/]+|tools/[^/]+)/';

/** I4: package → the folders that may import it. */
const ANYWHERE_PURE = [
  'kernel',
  'conversation',
  'agents',
  'bus',
  'persistence',
  'config',
  'models',
  'client',
  'gateway',
  'tools',
];
const VENDORS: Readonly<Record<string, readonly string[]>> = {
  '@a2a-js/sdk': ['gateway/a2a'],
  '@agentclientprotocol/sdk': ['acp'],
  '@ag-ui/core': ['gateway/ag-ui'],
  '@ag-ui/encoder': ['gateway/ag-ui'],
  '@hono/node-server': ['gateway'],
  '@modelcontextprotocol/client': ['tools/mcp'],
  '@modelcontextprotocol/server': ['gateway/mcp', 'acp/agents'],
  '@opentelemetry/api': ['traces'],
  '@opentelemetry/exporter-trace-otlp-proto': ['traces'],
  '@preact/signals': ['console'],
  '@tanstack/virtual-core': ['console'],
  ajv: ['kernel'],
  'ajv-formats': ['kernel'],
  commander: ['cli'],
  diff: ['conversation/text'],
  dompurify: ['console'],
  esbuild: ['tools/in-process'],
  'eventsource-parser': ['models', 'console'],
  'file-type': ['daemon/files'],
  'fs-native-extensions': ['persistence', 'bus/nats/managed'],
  'highlight.js': ['console'],
  hono: ['gateway'],
  'image-size': ['daemon/files'],
  'ipaddr.js': ['kernel'],
  lowdb: ['persistence'],
  'markdown-it': ['console'],
  nats: ['bus/nats', 'persistence/jetstream'],
  'nkeys.js': ['bus/nats/connection'],
  'node-sqlite3-wasm': ['search'],
  openai: ['models/http'],
  picocolors: ['cli'],
  pino: ['cli'],
  'pino-pretty': ['cli'],
  preact: ['console'],
  re2js: ['kernel'],
  'shell-quote': ['conversation/tools'],
  ulid: ['kernel'],
  yaml: ['config', 'models/scripted'],
  'string-width': ['cli'],
  'yocto-spinner': ['cli'],
  zod: ANYWHERE_PURE.filter((module) => module !== 'kernel'),
};

/** As written (`nats`, where nothing is installed) or as resolved (`…/node_modules/nats/index.js`). */
function packagePaths(names: readonly string[]): string[] {
  return names.flatMap((name) => [`^${name}(?:/|$)`, `node_modules/${name}/`]);
}

function moduleRules(): Rule[] {
  return Object.entries(MODULES).map(([name, { modules, files = [] }]) => {
    const allowed = [...[name, ...modules].map((module) => `${module}/`), ...files].join('|');
    return {
      name: `module-${name}`,
      comment: `I1: ${name} may import ${modules.length === 0 ? 'no other module' : modules.join(', ')}`,
      from: { path: `^src/${name}/` },
      to: { path: '^src/', pathNot: `^src/(?:${allowed})` },
    };
  });
}

function vendorRules(): Rule[] {
  const known = Object.entries(VENDORS).map(
    ([name, folders]): Rule => ({
      name: `vendor-${name.replaceAll(/[^a-z]+/g, '-').replace(/^-/, '')}`,
      comment: `I4: ${name} is imported in ${folders.map((home) => `src/${home}`).join(' and ')} only`,
      from: { path: '^src/', pathNot: `^src/(?:${folders.join('|')})/` },
      to: { path: packagePaths([name]) },
    }),
  );
  return [
    ...known,
    {
      name: 'unknown-vendor',
      comment: 'I4: add the package to VENDORS with the folders that may import it',
      from: { path: '^src/' },
      to: {
        pathNot: ['^src/', ...packagePaths(Object.keys(VENDORS))],
        dependencyTypesNot: ['core', 'local', 'localmodule'],
      },
    },
  ];
}

type Rule = Omit<IRegularForbiddenRuleType, 'severity'>;

const FORBIDDEN: readonly Rule[] = [
  ...moduleRules(),
  {
    name: 'unknown-module',
    comment: 'I1: add the folder to MODULES with the modules that it may import',
    from: { path: `^src/(?!(?:${Object.keys(MODULES).join('|')})/)[^/]+/` },
    to: {},
  },
  {
    name: 'package-without-cli',
    comment: 'I1: the library does not contain the command line',
    from: { path: String.raw`^src/[^/]+\.ts$` },
    to: { path: '^src/cli/' },
  },
  {
    name: 'module-through-its-index',
    comment: 'I2: import another module through its index.ts, or the file of a port',
    from: { path: '^src/([^/]+)/' },
    to: {
      path: '^src/[^/]+/',
      pathNot: [
        '^src/$1/',
        String.raw`^src/[^/]+/index\.ts$`,
        `^src/${ALL_PORTS}`,
        `^src/${FOLLOWER}`,
        `^src/${DIALECTS}`,
        `^src/${JSON_SCHEMA}`,
        `^src/${PUBLIC_ADDRESS}`,
        FOR_BROWSERS,
        `^${ADAPTERS}index\\.ts$`,
      ],
    },
  },
  {
    name: 'adapter-through-its-index',
    comment: 'I2: import an adapter through its index.ts',
    from: { path: `^(${ADAPTERS})` },
    to: { path: `^${ADAPTERS}`, pathNot: ['^$1', `^${ADAPTERS}index\\.ts$`, '^src/bus/nats/(?!managed/)'] },
  },
  {
    name: 'adapter-through-its-index-from-outside',
    comment: 'I2: import an adapter through its index.ts',
    from: { path: '^src/', pathNot: `^${ADAPTERS}` },
    to: { path: `^${ADAPTERS}`, pathNot: `^${ADAPTERS}(?:index|encode|decode)\\.ts$` },
  },
  {
    name: 'module-does-not-import-its-adapters',
    comment: 'I3: a port does not import its adapters',
    from: { path: String.raw`^src/(bus|persistence)/[^/]+\.ts$` },
    to: { path: '^src/$1/[^/]+/' },
  },
  {
    name: 'only-compose-names-adapters',
    comment: 'I3: in the daemon, only compose/ selects adapters',
    from: { path: '^src/daemon/', pathNot: '^src/daemon/compose/' },
    to: { path: `^src/models/|^src/tools/|^${ADAPTERS}` },
  },
  ...roomRules(),
  {
    name: 'unknown-room',
    comment: 'I8: add the folder to ROOMS with the rooms that it may import',
    from: { path: `^src/daemon/(?!(?:${Object.keys(ROOMS).join('|')})/)[^/]+/` },
    to: {},
  },
  ...vendorRules(),
  {
    name: 'no-cycles',
    comment: 'I5: files that import each other are merged, or share a third file',
    from: {},
    to: { circular: true },
  },
  {
    name: 'console-without-node',
    comment: 'I6: a browser has no Node modules',
    from: { path: '^src/console/' },
    to: { dependencyTypes: ['core'] },
  },
  {
    name: 'console-takes-types-of-the-contract',
    comment: 'I7: a browser sends requests that the daemon checks',
    from: { path: '^src/console/' },
    to: { path: `^src/${CONTRACT}`, dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'core-without-node',
    comment: 'I6: the core is a pure function of its inputs',
    from: { path: '^src/conversation/' },
    to: { dependencyTypes: ['core'] },
  },
];

export const RULES: readonly IForbiddenRuleType[] = FORBIDDEN.map((rule) => ({ ...rule, severity: 'error' }));
