export { type LinkedAbort, linkedAbort, sleep } from './abort.ts';
export { type Clock, systemClock } from './clock.ts';
export { isShallow, MAX_DEPTH } from './depth.ts';
export { makeDirectory } from './directory.ts';
export { messageOf, ParleyError, type Refusal, refusal } from './errors.ts';
export { createIdSource, type NewId } from './ids.ts';
export { Mailbox } from './mailbox.ts';
export { Releasers } from './releasers.ts';
export { VERSION } from './version.ts';
