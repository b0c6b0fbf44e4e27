export { createRemoteModel, type RemoteModel } from './model.ts';
export type { RemoteChannel, RemoteEvent, RemoteMessage, RemoteOffer, RemoteResults } from './session.ts';
