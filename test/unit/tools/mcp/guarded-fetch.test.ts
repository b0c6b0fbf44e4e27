import { describe, expect, it } from 'vitest';
import { guardFor } from '../../../../src/tools/mcp/oauth/guarded-fetch.ts';
import { errorWith } from '../../../support/error-with.ts';

/** Addresses are literal: nothing is resolved or requested. */
const PUBLIC = 'https://93.184.216.34/mcp';
const PRIVATE = 'https://10.1.2.3/mcp';
const LOOPBACK = 'http://127.0.0.1:1/mcp';

const refusalOf = (server: string, url: string, named: string[] = []) =>
  guardFor(server, named)
    .check(new URL(url))
    .then(
      () => null,
      ({ message }: Error) => message,
    );

describe('a URL that an MCP server names', () => {
  it.each([
    [PUBLIC, 'https://1.1.1.1/x'],
    [PRIVATE, 'https://10.9.9.9/x'],
    [PRIVATE, 'https://1.1.1.1/x'],
    [LOOPBACK, 'http://127.0.0.1:2/x'],
    [LOOPBACK, 'http://[::1]:2/x'],
    [PUBLIC, 'https://[2606:4700::1111]/x'],
  ])('of the server %s may be %s', async (server, url) => {
    expect(await refusalOf(server, url)).toBeNull();
  });

  it.each([
    [PUBLIC, 'https://10.9.9.9/x'],
    [PUBLIC, 'https://127.0.0.1/x'],
    [PUBLIC, 'http://127.0.0.1/x'],
    [PUBLIC, 'https://169.254.169.254/latest'],
    [PUBLIC, 'https://[::ffff:10.0.0.1]/x'],
    [PUBLIC, 'https://[fd00::1]/x'],
    [PUBLIC, 'https://0x7f.1/x'],
    [PRIVATE, 'https://127.0.0.1/x'],
    [LOOPBACK, 'https://10.9.9.9/x'],
  ])('of the server %s may not be %s: no public address (OAUTH-FETCH-2)', async (server, url) => {
    expect(await refusalOf(server, url)).toContain('has no public address');
  });

  it.each([
    'http://1.1.1.1/x',
    'ftp://1.1.1.1/x',
    'javascript:alert(1)',
    'data:text/html,x',
    'https://u:p@1.1.1.1/x',
  ])('may not be %s (OAUTH-FETCH-1)', async (url) => {
    expect(await refusalOf(PUBLIC, url)).toContain('takes no part in a login');
  });

  it('may have a private address that the configuration names, and no other', async () => {
    expect(await refusalOf(PUBLIC, 'https://10.9.9.9/x', ['https://10.9.9.9'])).toBeNull();
    expect(await refusalOf(PUBLIC, 'http://10.9.9.9/x', ['http://10.9.9.9'])).toContain('neither https');
    expect(await refusalOf(PUBLIC, 'https://10.9.9.8/x', ['https://10.9.9.9'])).toContain(
      'no public address',
    );
  });

  it('keeps its first refusal, for the SDK goes on without what it could not fetch', async () => {
    const guard = guardFor(PUBLIC, []);
    await guard.fetch('https://10.9.9.9/x').catch(() => undefined);
    await guard.fetch('http://1.1.1.1/x').catch(() => undefined);
    expect(guard.refusal).toMatchObject(errorWith('MCP_LOGIN_REFUSED', '10.9.9.9'));
  });
});
