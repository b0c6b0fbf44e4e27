export type { ManagedLog } from './host.ts';
export { type LocatedServer, OLDEST_VERSION } from './install/version.ts';
export { ensureNatsServer, type LocateOptions, locateNatsServer } from './launch/locate.ts';
export { type ManagedServerOptions, startManagedServer } from './launch/start.ts';
export type { Durability, ManagedServer, RestartEvent } from './launch/supervisor.ts';
export { choosePort } from './port.ts';
