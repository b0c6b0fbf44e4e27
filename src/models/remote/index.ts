export { createRemoteModel, type RemoteModel } from './model.ts';
export type {
  OpenRemoteChannel,
  RemoteChannel,
  RemoteEvent,
  RemoteMessage,
  RemoteOffer,
  RemoteOutcome,
  RemoteResults,
} from './session.ts';
