import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { callFailure } from '../../../../src/tools/mcp/failure.ts';
import { toolResult } from '../../../../src/tools/mcp/render-result.ts';

function told(error: Error): [code: string, message: string] {
  const { code, message } = callFailure('files', error, error.message);
  return [code, message];
}

describe('what a model is told of a call without a result', () => {
  it.each([
    new McpError(ErrorCode.RequestTimeout, 'timed out'),
    new McpError(ErrorCode.ConnectionClosed, 'Connection closed'),
    new StreamableHTTPError(502, 'bad gateway'),
    new Error('write EPIPE'),
  ])('is that it may have taken effect, when nobody can tell: %s (L12)', (error) => {
    expect(told(error)[1]).toContain('is not known');
  });

  it.each([401, 404])('is that nothing was done, when the server refused the request: %d', (status) => {
    const [code, message] = told(new StreamableHTTPError(status, 'no'));
    expect(code).toBe('MCP_SERVER_UNAVAILABLE');
    expect(message).toContain('Nothing was done');
  });

  it("is the server's own word, without the protocol's", () => {
    expect(told(new McpError(ErrorCode.InvalidParams, 'no such path'))).toEqual([
      'TOOL_FAILED',
      'no such path',
    ]);
  });

  it("is the server's own word too when it bears the code of a lost connection", () => {
    expect(told(new McpError(ErrorCode.ConnectionClosed, 'no such token'))).toEqual([
      'TOOL_FAILED',
      'no such token',
    ]);
  });

  it('is that the answer was no result', () => {
    const { error } = toolResult.safeParse({ content: 'text' });
    expect(told(error!)[1]).toContain('not a result of a tool');
  });
});
