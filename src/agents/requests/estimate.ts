import { estimateTokens } from '../../conversation/index.ts';
import type { WireMessage, WireTool } from '../model-port.ts';
import { CALL_FIELDS, MESSAGE_FIELDS } from './wire-form.ts';

/** Estimates the tokens of a request's parts, including what providers add to each message and each call. */

const PER_MESSAGE = 10;
const PER_CALL = 50;

export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + estimateTokens(message.content ?? '');
  tokens += estimateTokens(message.reasoning_content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + estimateTokens(call.function.name) + estimateTokens(call.function.arguments);
    tokens += opaqueTokens(call, CALL_FIELDS) + opaqueTokens(call.function, CALL_FIELDS);
  }
  return tokens + opaqueTokens(message, MESSAGE_FIELDS);
}

function opaqueTokens(fields: object, known: ReadonlySet<string>): number {
  let tokens = 0;
  for (const [name, value] of Object.entries(fields))
    if (!known.has(name)) tokens += estimateTokens(JSON.stringify([name, value]));
  return tokens;
}

export function toolTokens(tool: WireTool): number {
  return PER_CALL + estimateTokens(JSON.stringify(tool));
}
