/**
 * The NATS adapter: the only folder that imports the `nats` client for the bus.
 *
 * bus.ts        implements the port (`../port.ts`) from the parts below and owns both connections
 * connection/   connects and reconnects, reads credentials, reports losses of the connection
 * ingress/      reads the ingress stream: fair queue, backlog, capacity, dead letters, record of settled posts
 * cluster/      reads the ingress stream together with other daemons, and sends messages between them
 * feeds.ts      publishes entries, live text and audit records, best effort
 * serving/      answers requests as a NATS micro service, registers the daemon, offers turns to remote agents
 * streams/      creates streams, sets replicas, erases texts, turns server errors into `ParleyError`
 * managed/      runs a nats-server as a child: finds or installs, starts, adopts, supervises it
 *
 * Decisions about posts, turns and approvals belong to `src/conversation/` and `src/daemon/`.
 */
export type { NatsConnection } from 'nats';
export { createNatsBus, type NatsBusOptions } from './bus.ts';
export { closeConnection, type NatsOptions, openNats, watchConnection } from './connection/connection.ts';
export { CredentialMonitor, refusedCredentials } from './connection/credentials.ts';
export { transferSettledRecord } from './ingress/settled-keeper.ts';
export { newInbox } from './ingress/stored-posts.ts';
export { reserveSubjects } from './serving/service.ts';
export {
  afterLeaderElection,
  checkJetStream,
  enforceReplicas,
  ensureStreams,
  requireReplicas,
} from './streams/streams.ts';
