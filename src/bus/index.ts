/**
 * The bus: subjects, envelopes and schemas of all messages, and the port that a broker's adapter fulfils. Everything here is
 * pure; `nats/` is the adapter.
 *
 * port.ts          what the daemon needs of a bus, alone or among daemons that share the work
 * contract.ts      request and answer of each verb of the request API; answers.ts: the longer ones
 * peer-contract.ts messages between daemons; remote-turns.ts: between the daemon and an agent in another process, live text
 * post.ts          a post on its way: as the stream has it, its fate when it is read again, decoded or refused
 * dead-letter.ts   a refused post, kept and sent again; settled.ts: which posts of the stream are settled
 * envelopes.ts     requests and answers as bytes; the codes of errors
 * subjects.ts      every subject; permissions.ts: who may use them, and the accounts that hold them
 * follower.ts      follows a conversation: the feed, with its gaps filled from the log
 *
 * Nothing here opens a connection or reads a clock. The gateway imports `contract.ts`, `port.ts`,
 * `follower.ts` alone.
 */

export {
  type BackOffStatus,
  FOUND,
  MOST_STATUS_ROWS,
  type ModelStatus,
  type ProgramStatus,
  STATUS_ROWS,
  type StatusGroups,
  type WhatIfRun,
  type WhatIfSummary,
  type WhatIfTally,
  type WhatIfTurn,
} from './answers.ts';
export * from './contract.ts';
export {
  decodeDeadLetter,
  encodeDeadLetter,
  MAX_ORIGINAL_BYTES,
  type Repost,
  repostOf,
  SKIPPED,
} from './dead-letter.ts';
export { decodeRequest, statusOf } from './envelopes.ts';
export { type Arrival, Follower } from './follower.ts';
export * from './peer-contract.ts';
export * from './permissions.ts';
export * from './port.ts';
export * from './post.ts';
export * from './remote-turns.ts';
export type { Owner } from './settled.ts';
export { ANY, createSubjects, type Subjects } from './subjects.ts';
