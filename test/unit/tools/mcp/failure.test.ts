import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { callFailure } from '../../../../src/tools/mcp/failure.ts';
import { toolResult } from '../../../../src/tools/mcp/render-result.ts';

function told(error: Error): [code: string, message: string] {
  const { code, message } = callFailure('files', error, error.message);
  return [code, message];
}

describe('the failure of an MCP call without a result', () => {
  it.each([
    new McpError(ErrorCode.RequestTimeout, 'timed out'),
    new McpError(ErrorCode.ConnectionClosed, 'Connection closed'),
    new StreamableHTTPError(502, 'bad gateway'),
    new Error('write EPIPE'),
  ])('a call may have taken effect when its outcome is unknown: %s (L12)', (error) => {
    expect(told(error)[1]).toContain('is not known');
  });

  it.each([401, 404])('a call has not taken effect when the server refuses the request with %d', (status) => {
    const [code, message] = told(new StreamableHTTPError(status, 'no'));
    expect(code).toBe('MCP_SERVER_UNAVAILABLE');
    expect(message).toContain('Nothing was done');
  });

  it('the failure contains the message of the server without the prefix of the protocol', () => {
    expect(told(new McpError(ErrorCode.InvalidParams, 'no such path'))).toEqual([
      'TOOL_FAILED',
      'no such path',
    ]);
  });

  it('the failure contains the message of the server even if its code is the one of a lost connection', () => {
    expect(told(new McpError(ErrorCode.ConnectionClosed, 'no such token'))).toEqual([
      'TOOL_FAILED',
      'no such token',
    ]);
  });

  it('the failure reports an answer that is not a tool result', () => {
    const { error } = toolResult.safeParse({ content: 'text' });
    expect(told(error!)[1]).toContain('not a result of a tool');
  });
});
