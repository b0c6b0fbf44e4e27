/**
 * A nats-server that runs as a child of the daemon, on a directory and a loopback port of its own.
 *
 * install.ts        finds a nats-server, or installs one
 * host.ts           the operations on the machine (tests replace it)
 * directory.ts      the files of one server
 * launch.ts         starts or adopts a server, with its configuration and the lock that prevents two on one directory
 * supervisor.ts     restarts and ends it; syncs the files of an old one
 *
 * A process gets a signal only if it is verified to be this server.
 */

export type { ManagedLog } from './host.ts';
export { locateNatsServer } from './install.ts';
export { choosePort } from './launch.ts';
export { type ManagedServer, type ManagedServerOptions, startManagedServer } from './supervisor.ts';
