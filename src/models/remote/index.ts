export { createRemoteModel, type RemoteModel } from './model.ts';
export type * from './port.ts';
