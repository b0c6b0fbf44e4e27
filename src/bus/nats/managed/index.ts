export { ensureNatsServer, type LocateOptions, locateNatsServer } from './locate.ts';
export type { ManagedLog } from './log.ts';
export { choosePort } from './port.ts';
export { type ManagedServerOptions, startManagedServer } from './start.ts';
export type { Durability, ManagedServer, RestartEvent } from './supervisor.ts';
export { type LocatedServer, OLDEST_VERSION } from './version.ts';
