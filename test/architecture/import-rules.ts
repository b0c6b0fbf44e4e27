import type { IForbiddenRuleType } from 'dependency-cruiser';

/**
 * Who may import whom, as rules for dependency-cruiser. Paths are relative to the folder that holds `src/`.
 *
 * I1 A room imports the rooms listed for it and no others; types count.
 * I2 A room, and an adapter's folder, is entered by its `index.ts`. The one exception are ports: an adapter may name
 *    the file of the port that it fulfils, and the contract of the request API is a port. The gateway takes the bus's follower. And the console takes single files of the core and the kernel, since a browser
 *    is sent whatever is imported.
 * I3 A room's own files do not know its adapters; in the daemon only `compose/` names one.
 * I4 A vendor's package has one home. `fs-native-extensions` has two, since the lock that the kernel frees is needed
 *    for two directories, the store's and the managed server's, and those rooms may not import one another; so has
 *    `nats`, for the bus and for the store that is a stream, and MCP's, whose two ends we are.
 * I5 No cycles, types included.
 * I6 The core imports no Node module: no clock, no dice, no files. Nor does the console, which browsers run.
 */

interface Room {
  /** Rooms that may be imported, by name. */
  readonly rooms: readonly string[];
  /** Single files besides, as regular expressions. */
  readonly files?: readonly string[];
}

const AGENT_PORTS = String.raw`agents/[a-z]+-port\.ts$`;
const ALL_PORTS = String.raw`(?:agents|bus|persistence)/(?:port|contract|[a-z]+-port)\.ts$`;

/** I2: the gateway follows conversations as clients do. */
const FOLLOWER = String.raw`bus/follower\.ts$`;

/** I2 */
const FOR_BROWSERS = String.raw`^src/(?:conversation/(?:view/view-diff|log/finish-reason|state/usage)|kernel/hidden)\.ts$`;

/** I1 */
const ROOMS: Readonly<Record<string, Room>> = {
  kernel: { rooms: [] },
  conversation: { rooms: ['kernel'] },
  agents: { rooms: ['kernel', 'conversation'] },
  bus: { rooms: ['kernel', 'conversation'] },
  persistence: { rooms: ['kernel', 'conversation'] },
  models: { rooms: ['kernel', 'conversation'], files: [AGENT_PORTS] },
  tools: { rooms: ['kernel', 'conversation'], files: [AGENT_PORTS] },
  config: { rooms: ['kernel', 'conversation'] },
  gateway: { rooms: ['kernel', 'conversation'], files: [ALL_PORTS, FOLLOWER] },
  client: { rooms: ['kernel', 'conversation', 'bus'] },
  daemon: {
    rooms: [
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
    ],
  },
  chaos: { rooms: ['kernel', 'conversation', 'bus', 'client'] },
  console: { rooms: ['conversation'], files: [String.raw`kernel/hidden\.ts$`] },
  cli: { rooms: ['kernel', 'config', 'daemon', 'client', 'chaos'] },
};

/** Folders of adapters inside a room; each is entered by its own `index.ts`. */
const ADAPTERS = 'src/(?:bus/nats/managed|bus/nats|persistence/[^/]+|models/[^/]+|tools/[^/]+)/';

/** I4: package → the folders that may import it. */
const ANYWHERE_PURE = [
  'kernel',
  'conversation',
  'agents',
  'bus',
  'config',
  'models',
  'client',
  'gateway',
  'tools',
];
const VENDORS: Readonly<Record<string, readonly string[]>> = {
  '@a2a-js/sdk': ['gateway/a2a'],
  '@ag-ui/core': ['gateway/ag-ui'],
  '@ag-ui/encoder': ['gateway/ag-ui'],
  '@hono/node-server': ['gateway'],
  '@modelcontextprotocol/sdk': ['tools/mcp', 'gateway/mcp'],
  '@preact/signals': ['console'],
  '@tanstack/virtual-core': ['console'],
  commander: ['cli'],
  dompurify: ['console'],
  'eventsource-parser': ['models/openai', 'console'],
  'fs-native-extensions': ['persistence', 'bus/nats/managed'],
  'highlight.js': ['console'],
  hono: ['gateway'],
  lowdb: ['persistence'],
  'markdown-it': ['console'],
  nats: ['bus/nats', 'persistence/jetstream'],
  openai: ['models/openai'],
  picocolors: ['cli'],
  pino: ['cli'],
  'pino-pretty': ['cli'],
  preact: ['console'],
  'shell-quote': ['daemon'],
  ulid: ['kernel'],
  yaml: ['config', 'models/scripted'],
  'yocto-spinner': ['cli'],
  zod: ANYWHERE_PURE.filter((room) => room !== 'kernel'),
};

/** As written (`nats`, where nothing is installed) or as resolved (`…/node_modules/nats/index.js`). */
function packagePaths(names: readonly string[]): string[] {
  return names.flatMap((name) => [`^${name}(?:/|$)`, `node_modules/${name}/`]);
}

function roomRules(): IForbiddenRuleType[] {
  return Object.entries(ROOMS).map(([name, { rooms, files = [] }]) => {
    const allowed = [...[name, ...rooms].map((room) => `${room}/`), ...files].join('|');
    return {
      name: `room-${name}`,
      severity: 'error',
      comment: `I1: ${name} may import ${rooms.length === 0 ? 'no other room' : rooms.join(', ')}`,
      from: { path: `^src/${name}/` },
      to: { path: '^src/', pathNot: `^src/(?:${allowed})` },
    };
  });
}

function vendorRules(): IForbiddenRuleType[] {
  const known = Object.entries(VENDORS).map(
    ([name, homes]): IForbiddenRuleType => ({
      name: `vendor-${name.replaceAll(/[^a-z]+/g, '-').replace(/^-/, '')}`,
      severity: 'error',
      comment: `I4: ${name} is imported in ${homes.map((home) => `src/${home}`).join(' and ')} only`,
      from: { path: '^src/', pathNot: `^src/(?:${homes.join('|')})/` },
      to: { path: packagePaths([name]) },
    }),
  );
  return [
    ...known,
    {
      name: 'vendor-without-a-home',
      severity: 'error',
      comment: 'I4: a package that is new to src/ gets a home in this table first',
      from: { path: '^src/' },
      to: {
        pathNot: ['^src/', ...packagePaths(Object.keys(VENDORS))],
        dependencyTypesNot: ['core', 'local', 'localmodule'],
      },
    },
  ];
}

export const RULES: readonly IForbiddenRuleType[] = [
  ...roomRules(),
  {
    name: 'unknown-room',
    severity: 'error',
    comment: 'I1: a folder of src/ that these rules do not know is bound by none of them',
    from: { path: `^src/(?!(?:${Object.keys(ROOMS).join('|')})/)[^/]+/` },
    to: {},
  },
  {
    name: 'room-of-the-package',
    severity: 'error',
    comment: 'I1: the library holds everything but the command line',
    from: { path: String.raw`^src/[^/]+\.ts$` },
    to: { path: '^src/cli/' },
  },
  {
    name: 'room-by-its-index',
    severity: 'error',
    comment: 'I2: another room is entered by its index.ts, or by the file of a port',
    from: { path: '^src/([^/]+)/' },
    to: {
      path: '^src/[^/]+/',
      pathNot: [
        '^src/$1/',
        String.raw`^src/[^/]+/index\.ts$`,
        `^src/${ALL_PORTS}`,
        `^src/${FOLLOWER}`,
        FOR_BROWSERS,
        `^${ADAPTERS}index\\.ts$`,
      ],
    },
  },
  {
    name: 'adapter-by-its-index',
    severity: 'error',
    comment: "I2: an adapter's folder is entered by its index.ts",
    from: { path: `^(${ADAPTERS})` },
    to: { path: `^${ADAPTERS}`, pathNot: ['^$1', `^${ADAPTERS}index\\.ts$`, '^src/bus/nats/(?!managed/)'] },
  },
  {
    name: 'adapter-by-its-index-from-outside',
    severity: 'error',
    comment: "I2: an adapter's folder is entered by its index.ts",
    from: { path: '^src/', pathNot: `^${ADAPTERS}` },
    to: { path: `^${ADAPTERS}`, pathNot: `^${ADAPTERS}index\\.ts$` },
  },
  {
    name: 'room-does-not-know-its-adapters',
    severity: 'error',
    comment: 'I3: a port does not know who fulfils it',
    from: { path: String.raw`^src/(bus|persistence)/[^/]+\.ts$` },
    to: { path: '^src/$1/[^/]+/' },
  },
  {
    name: 'only-compose-names-adapters',
    severity: 'error',
    comment: 'I3: in the daemon, only compose/ selects adapters',
    from: { path: '^src/daemon/', pathNot: '^src/daemon/compose/' },
    to: { path: `^src/models/|^src/tools/|^${ADAPTERS}` },
  },
  ...vendorRules(),
  {
    name: 'no-cycles',
    severity: 'error',
    comment: 'I5: what imports each other is one file, or needs a third',
    from: {},
    to: { circular: true },
  },
  {
    name: 'console-without-node',
    severity: 'error',
    comment: 'I6: a browser has no files',
    from: { path: '^src/console/' },
    to: { dependencyTypes: ['core'] },
  },
  {
    name: 'core-without-node',
    severity: 'error',
    comment: 'I6: the core computes; it does not look around',
    from: { path: '^src/conversation/' },
    to: { dependencyTypes: ['core'] },
  },
];
