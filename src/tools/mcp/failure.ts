import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { ToolOutcome } from '../../agents/tool-port.ts';
import { MessageTooLarge } from './transport/messages.ts';

type Failed = Extract<ToolOutcome, { kind: 'failed' }>;

/** The failure of a call without a result, for the model. An effect that may have happened is reported as unknown (L12). */
export function callFailure(server: string, error: unknown, reason: string): Failed {
  if (error instanceof MessageTooLarge) {
    const advice = 'Ask for less: a part, a page, or a file.';
    return failed(
      'TOOL_RESULT_TOO_LARGE',
      `the server ${server} was cut off: ${reason}. ${UNKNOWN} ${advice}`,
    );
  }
  if (error instanceof McpError && error.code === ErrorCode.RequestTimeout) {
    return failed('TOOL_TIMEOUT', `the server ${server} did not answer in time (${reason}). ${UNKNOWN}`);
  }
  if (error instanceof McpError && !isLost(error)) {
    return failed('TOOL_FAILED', reason.replace(/^(?:MCP error -?\d+: )+/, ''));
  }
  if (error instanceof z.core.$ZodError) {
    return failed(
      'TOOL_FAILED',
      `the server ${server} answered with something that is not a result of a tool`,
    );
  }
  // A 4xx status: the server refused the request (unknown session or caller) and did not execute it.
  if (error instanceof StreamableHTTPError && error.code !== undefined && isRefusal(error.code)) {
    return failed(
      'MCP_SERVER_UNAVAILABLE',
      `the server ${server} refused the call (${reason}). Nothing was done.`,
    );
  }
  return failed(
    'MCP_CONNECTION_LOST',
    `the server ${server} was lost during the call (${reason}). ${UNKNOWN}`,
  );
}

export function unavailable(server: string, error: string | null): Failed {
  const why = error === null ? '' : `: ${error}`;
  return failed('MCP_SERVER_UNAVAILABLE', `the server ${server} is not there${why}. Nothing was done.`);
}

export function failed(code: string, message: string): Failed {
  return { kind: 'failed', code, message };
}

const UNKNOWN = 'Whether the call took effect is not known: look before you call again.';

/** The error of a request whose stream ended before its answer. */
export const STREAM_ENDED = 'the stream ended without an answer';

/** Checks the text of the SDK or ours: many servers use the same code for any failure of a tool. */
function isLost({ code, message }: McpError): boolean {
  const isWord = [': Connection closed', `: ${STREAM_ENDED}`].some((word) => message.endsWith(word));
  return code === ErrorCode.ConnectionClosed && isWord;
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}
