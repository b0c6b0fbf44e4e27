export { createRemoteModel, type RemoteModel, type RemoteModelOptions } from './model.ts';
export type * from './port.ts';
