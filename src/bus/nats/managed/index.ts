/**
 * A nats-server that runs as a child of the daemon, on a directory and a loopback port of its own.
 *
 * host.ts        the operations on the machine (tests replace it); context.ts: the input of every step
 * directory.ts   the files of one server; lock.ts: prevents two servers on one directory
 * process.ts     identifies the server's process; port.ts chooses a port
 * install/       installs a nats-server, reads its version
 * launch/        finds the program, starts or adopts a server, supervises, restarts and ends it
 *
 * A process gets a signal only if it is verified to be this server.
 */

export type { ManagedLog } from './host.ts';

export { ensureNatsServer, locateNatsServer } from './launch/locate.ts';
export type { ManagedServer } from './launch/supervisor.ts';
export { type ManagedServerOptions, startManagedServer } from './launch/supervisor.ts';
export { choosePort } from './port.ts';
