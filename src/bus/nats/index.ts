export type { NatsConnection } from 'nats';
export { createNatsBus, type NatsBusOptions } from './bus.ts';
export { type NatsOptions, openNats } from './connection.ts';
export { type ConnectionWatch, closeConnection, watchConnection } from './connection-life.ts';
export { holdSubjects } from './hold.ts';
export { Refusal, refusedCredentials } from './refusal.ts';
export { keepReplicas, onceElected, requireReplicas } from './replicas.ts';
export { urlWithoutSecrets } from './servers.ts';
export { ensureStreams } from './streams.ts';
