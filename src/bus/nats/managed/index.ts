export type { ManagedLog } from './host.ts';

export { ensureNatsServer, locateNatsServer } from './launch/locate.ts';
export { type ManagedServerOptions, startManagedServer } from './launch/start.ts';
export type { ManagedServer } from './launch/supervisor.ts';
export { choosePort } from './port.ts';
