/**
 * Models: adapters of the port `src/agents/model-port.ts`.
 *
 * openai/    chat completions over HTTP, for any compatible provider; imported directly
 * remote/    agents in other processes: a call offers them the turn (session.ts: one offer and its transport)
 * scripted/  answers from a script without a network (script.ts: its form, and reading it), or from a function
 *            (function-model.ts); record.ts: the script that repeats a conversation
 *
 * Only openai/ may import the vendor's package. No retry decision outside the adapters' `retryable`; no access to logs.
 */
export {
  createRemoteModel,
  type OpenRemoteChannel,
  type RemoteModel,
} from './remote/index.ts';
export {
  createFunctionModel,
  createOfflineModel,
  createScriptedModel,
  type FunctionCall,
  type FunctionReply,
  type FunctionRequest,
  loadScript,
  type ModelFunction,
  recordedScript,
  type Script,
  type ScriptedModelOptions,
} from './scripted/index.ts';
