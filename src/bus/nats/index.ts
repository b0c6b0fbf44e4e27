export type { NatsConnection } from 'nats';
export { createNatsBus, type NatsBusOptions } from './bus.ts';
export { type NatsOptions, openNats, urlWithoutSecrets } from './connection.ts';
export { closeConnection } from './connection-life.ts';
