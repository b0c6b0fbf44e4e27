export type { NatsConnection } from 'nats';
export { type NatsOptions, openNats, urlWithoutSecrets } from './connection.ts';
