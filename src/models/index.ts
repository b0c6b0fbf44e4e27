export {
  createRemoteModel,
  type OpenLine,
  type RemoteModel,
  type RemoteModelOptions,
} from './remote/index.ts';
export { createScriptedModel, loadScript, type Script } from './scripted/index.ts';
