/**
 * Models: adapters of the port `src/agents/model-port.ts`.
 *
 * dialects.ts   the encoders of all dialects: from a view to the body of a request
 * protocols.ts  how each dialect is reached, and its decoder; reader.ts: the body of an answer: events or one document;
 *               faults.ts: errors of the provider and the network as codes
 * sent.ts       what the encoders share: own blocks, names and arguments of calls, as every provider accepts them
 * chat/      chat completions; anthropic/: Messages of Anthropic; responses/: Responses of OpenAI; each with encode.ts and decode.ts
 * http/      one attempt at a model behind HTTP, in any dialect; imported directly
 * remote/    agents in other processes: a call offers them the turn (session.ts: one offer and its transport)
 * scripted/  answers from a script without a network (script.ts: its form, and reading it), or from a function
 *            (function-model.ts); makes the script that repeats a conversation
 *
 * Only http/ may import the vendor's package. No retry decision outside the adapters' `retryable`; no access to logs.
 */
export { createRemoteModel, type RemoteModel } from './remote/index.ts';
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
  type ScriptedModelOptions,
} from './scripted/index.ts';
