/**
 * A nats-server of the daemon's own, on a directory and a loopback port of its own: a detached process, which survives a killed daemon.
 *
 * install.ts        finds a nats-server, or installs one
 * host.ts           the operations on the machine (tests replace it)
 * directory.ts      the files of one server, the lock that prevents two on one directory, and the process that holds it
 * launch.ts         starts or adopts a server, with its configuration
 * supervisor.ts     restarts and ends it; syncs the files of an old one
 *
 * A process gets a signal only if it is verified to be this server.
 */

export type { ManagedLog } from './host.ts';
export { findNatsServer, locateNatsServer } from './install.ts';
export { choosePort } from './launch.ts';
export { type ManagedServer, type ManagedServerOptions, startManagedServer } from './supervisor.ts';
