import { type Definition, partHashes } from '../../agents/index.ts';
import { type Config, settingDigest } from '../../config/index.ts';
import type { TeamChange } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

/** Compares two configurations. Each setting can be reloaded or needs a restart; a new one that is neither does not compile. */

type Setting = Exclude<
  keyof Config,
  'roster' | 'notices' | 'daemon' | 'environmentFiles' | 'secretFiles' | 'variables'
>;

/** The keys under which people know the settings. `restart`: the daemon reads them only when it starts. */
const SETTINGS: Readonly<Record<Setting, { readonly key: string; readonly restart?: true }>> = {
  agents: { key: 'agents/*.md' },
  defaultAgent: { key: 'defaultAgent' },
  models: { key: 'models' },
  scripts: { key: 'models.*.script' },
  phases: { key: 'phases' },
  context: { key: 'context' },
  titleModel: { key: 'titleModel' },
  limits: { key: 'limits' },
  retry: { key: 'retry' },
  tools: { key: 'tools, mcpServers, tools/*.ts' },
  approvals: { key: 'approvals' },
  publishers: { key: 'publishers' },
  blobs: { key: 'blobs' },
  prompts: { key: 'prompts' },
  workflows: { key: 'workflows' },
  directory: { key: '--config', restart: true },
  subjectPrefix: { key: 'subjectPrefix', restart: true },
  ingress: { key: 'ingress', restart: true },
  retention: { key: 'retention', restart: true },
  shutdown: { key: 'shutdown', restart: true },
  sharing: { key: 'sharing', restart: true },
  replicas: { key: 'jetstream.replicas', restart: true },
  remoteAgents: { key: 'agents', restart: true },
  telemetry: { key: 'PARLEY_TELEMETRY', restart: true },
  traces: { key: 'telemetry', restart: true },
};

/** The keys and flags of `daemon`. All need a restart. */
const DAEMON: Readonly<Record<keyof Config['daemon'], string>> = {
  data: '--data',
  nats: 'nats',
  natsBinary: 'NATS_BIN',
  store: '--store',
  http: 'http',
};

/** The keys of what differs. Throws `RESTART_NEEDED` if the daemon cannot change one of them while it runs. */
export function changedSettings(before: Config, after: Config): string[] {
  const changed = differing(SETTINGS, before, after).map((setting) => SETTINGS[setting]);
  const fixed = [
    ...changed.flatMap(({ key, restart }) => (restart ? [key] : [])),
    ...differing(DAEMON, before.daemon, after.daemon).map((setting) => DAEMON[setting]),
  ];
  if (fixed.length === 0) return changed.map(({ key }) => key);
  throw new ParleyError('RESTART_NEEDED', `only a restart can change ${fixed.join(', ')}`, {
    hint: 'undo that change and reload the others, or restart the daemon; nothing was changed',
  });
}

function differing<Key extends string, Settings extends Readonly<Record<Key, unknown>>>(
  keys: Readonly<Record<Key, unknown>>,
  before: Settings,
  after: Settings,
): Key[] {
  return (Object.keys(keys) as Key[]).filter(
    (key) => settingDigest(before[key]) !== settingDigest(after[key]),
  );
}

/** `null`: there is no such agent. */
export function changeOf(
  agent: string,
  before: Definition | null,
  after: Definition | null,
): TeamChange | null {
  if (before?.hash === after?.hash) return null;
  const parts = before && after ? differingParts(before, after) : [];
  const change = before === null ? 'added' : after === null ? 'removed' : 'changed';
  return {
    agent,
    change,
    ...(before && { before: before.hash }),
    ...(after && { after: after.hash }),
    parts,
  };
}

function differingParts(before: Definition, after: Definition): string[] {
  const [old, now] = [partHashes(before), partHashes(after)];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((name) => old[name] !== now[name])
    .sort();
}
