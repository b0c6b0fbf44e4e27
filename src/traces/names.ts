/**
 * The names of spans and attributes. `gen_ai.*` and `error.type` follow the GenAI semantic conventions 0.1.0; `parley.*` is
 * what they have no name for.
 */
export const SPAN_NAMES = {
  post: 'post',
  turn: 'invoke_agent',
  model: 'chat',
  tool: 'execute_tool',
  approval: 'approval',
  summary: 'reduce_view',
} as const;

export const ATTRIBUTES = {
  operation: 'gen_ai.operation.name',
  agent: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  model: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  callId: 'gen_ai.tool.call.id',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
  errorType: 'error.type',
  publisher: 'parley.publisher',
  entry: 'parley.entry.index',
  turn: 'parley.turn.id',
  outcome: 'parley.turn.outcome',
  waits: 'parley.turn.waits',
  requestHash: 'parley.request.hash',
  usd: 'parley.usage.usd',
  risk: 'parley.tool.risk',
  approval: 'parley.approval.answer',
} as const;
