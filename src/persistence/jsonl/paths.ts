import { join } from 'node:path';

/** Where everything stands under a data directory. The only place that spells these names. */
export interface StorePaths {
  readonly root: string;
  readonly lock: string;
  readonly ingress: string;
  readonly attempts: string;
  readonly deciding: string;
  readonly deleted: string;
  readonly conversations: string;
  readonly rows: string;
  /** Which format the logs have. */
  readonly format: string;
  /** Names the logs. */
  readonly identity: string;
  readonly marks: string;
  /** Stands there while conversations are moved into the directory. */
  readonly migration: string;
  conversation(id: string): string;
  log(id: string): string;
  state(id: string): string;
  audit(id: string): string;
  outputs(id: string): string;
  /** What `@state/logs/tool-results/<conversation>/<entry>.json` is. */
  output(id: string, entryId: string): string;
}

export function storePaths(root: string): StorePaths {
  const conversations = join(root, 'conversations');
  return {
    root,
    lock: join(root, 'LOCK'),
    ingress: join(root, 'ingress.json'),
    attempts: join(root, 'attempts.json'),
    deciding: join(root, 'deciding.json'),
    deleted: join(root, 'deleted.json'),
    conversations,
    rows: join(conversations, 'index.json'),
    format: join(conversations, 'format.json'),
    identity: join(conversations, 'identity.json'),
    marks: join(root, 'open'),
    migration: join(root, 'migration.json'),
    conversation: (id) => join(conversations, id),
    log: (id) => join(conversations, id, 'log.jsonl'),
    state: (id) => join(conversations, id, 'state.json'),
    audit: (id) => join(conversations, id, 'audit.jsonl'),
    outputs: (id) => join(conversations, id, 'outputs'),
    output: (id, entryId) => join(conversations, id, 'outputs', `${entryId}.json`),
  };
}
