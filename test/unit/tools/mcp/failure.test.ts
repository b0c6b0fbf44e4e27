import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/client';
import { describe, expect, it } from 'vitest';
import { hideValues } from '../../../../src/kernel/index.ts';
import {
  callFailure,
  reasonFor,
  STREAM_ENDED,
  STREAM_ENDED_CODE,
} from '../../../../src/tools/mcp/failure.ts';

function told(error: Error): [code: string, message: string] {
  const { code, message } = callFailure('files', error, error.message);
  return [code, message];
}

const posting = (status: number, text: string) =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, `Error POSTing to endpoint: ${text}`, {
    status,
    text,
  });

describe('the failure of an MCP call without a result', () => {
  it.each([
    new SdkError(SdkErrorCode.RequestTimeout, 'timed out'),
    new SdkError(SdkErrorCode.ConnectionClosed, 'Connection closed'),
    new ProtocolError(STREAM_ENDED_CODE, STREAM_ENDED),
    posting(502, 'bad gateway'),
    new Error('write EPIPE'),
  ])('a call may have taken effect when its outcome is unknown: %s (L12)', (error) => {
    expect(told(error)[1]).toContain('is not known');
  });

  it.each([401, 404])('a call has not taken effect when the server refuses the request with %d', (status) => {
    const [code, message] = told(posting(status, 'no'));
    expect(code).toBe('MCP_SERVER_UNAVAILABLE');
    expect(message).toContain('Nothing was done');
  });

  it('the failure contains the message of the server without the prefix of the protocol', () => {
    expect(told(new ProtocolError(ProtocolErrorCode.InvalidParams, 'no such path'))).toEqual([
      'TOOL_FAILED',
      'no such path',
    ]);
  });

  it('the failure contains the message of the server even if its code is the one of a lost connection', () => {
    expect(told(new ProtocolError(STREAM_ENDED_CODE, 'no such token'))).toEqual([
      'TOOL_FAILED',
      'no such token',
    ]);
  });

  const reason = reasonFor(hideValues(['Bearer key-123']));
  const shown = (error: Error) => callFailure('files', error, reason(error)).message;

  it.each([
    [
      posting(403, '{"error":"insufficient_scope key-123"}'),
      /refused the call \(it answered 403: {"error":"insufficient_scope \[secret\]"} \(check its headers/,
    ],
    [posting(401, ''), /it answered 401 \(check its headers/],
    [
      posting(404, '<!DOCTYPE html>\n<html><pre>Cannot POST /sse</pre></html>'),
      /it answered 404: Cannot POST \/sse \(check its url; the older transport HTTP\+SSE/,
    ],
    [posting(405, 'Method Not Allowed'), /it answered 405: Method Not Allowed \(check its url; the older/],
    [posting(500, 'x'.repeat(10_000)), /^.{1,700}$/],
    [
      new SdkError(
        SdkErrorCode.EraNegotiationFailed,
        'Version negotiation failed: the connection closed during the server/discover probe (this transport …)',
      ),
      /\(it ended before it answered\)/,
    ],
  ])('the failure says what the server answered, and what to check: %s', (error, expected) => {
    expect(shown(error)).toMatch(expected);
  });

  it('the failure names the page that a person must open first (-32042)', () => {
    const elicitation = {
      mode: 'url',
      elicitationId: 'e1',
      message: 'Connect\nyour account',
      url: 'https://a.test/c?k=key-123',
    };
    const error = ProtocolError.fromError(-32042, 'URL elicitation required', {
      elicitations: [elicitation],
    });
    expect(error).toBeInstanceOf(UrlElicitationRequiredError);
    expect(shown(error)).toMatch(
      /^a person must first open https:\/\/a\.test\/c\?k=\[secret\] \(Connect.{1,2}your account\)\. Nothing was done/,
    );
    const hostile = { ...elicitation, url: 'javascript:alert(1)' };
    expect(shown(ProtocolError.fromError(-32042, 'x', { elicitations: [hostile] }))).toContain(
      'a page that it does not name',
    );
    expect(shown(ProtocolError.fromError(-32042, 'say more', {}))).toBe('say more');
  });

  it('the failure reports an answer that is not a tool result', () => {
    const error = new SdkError(SdkErrorCode.InvalidResult, 'content: expected array');
    expect(told(error)[1]).toContain('not a result of a tool');
  });
});
