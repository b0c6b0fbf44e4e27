import { expect, it } from 'vitest';
import { isBareServer, splitUrls } from '../../../src/kernel/index.ts';

it.each<[string, string | string[], string[]]>([
  ['one host', 'one:4222', ['one:4222']],
  ['several hosts and ports', 'one:4222, two:4223 ,three', ['one:4222', 'two:4223', 'three']],
  ['URLs', 'nats://one:1,tls://two:2', ['nats://one:1', 'tls://two:2']],
  ['a host name with an underscore', 'nats_1:4222,nats_2:4222', ['nats_1:4222', 'nats_2:4222']],
  ['an underscore after a URL', 'nats://one:1,nats_2:2', ['nats://one:1', 'nats_2:2']],
  ['IPv6 addresses with ports', '[::1]:4222,[::1]:4223', ['[::1]:4222', '[::1]:4223']],
  ['an IPv6 address after a URL', 'nats://one:1,[fe80::1%eth0]:2', ['nats://one:1', '[fe80::1%eth0]:2']],
  ['an IPv6 address without a port', 'one,[::1]', ['one', '[::1]']],
  ['an IPv6 address in a URL', 'nats://[::1]:1,nats://[::1]:2', ['nats://[::1]:1', 'nats://[::1]:2']],
  ['a password with a comma', 'nats://me:a,b@one:1,two:2', ['nats://me:a,b@one:1', 'two:2']],
  ['a password with a comma and an underscore', 'nats://me:a,b_c@one:1', ['nats://me:a,b_c@one:1']],
  ['a password with a comma and a bracket', 'nats://me:a,[b@one:1', ['nats://me:a,[b@one:1']],
  ['a list', ['one:1', 'two:2,[::1]:3'], ['one:1', 'two:2', '[::1]:3']],
  ['the same one twice', 'one:1,one:1', ['one:1']],
])('%s in a list of servers is split at the commas between servers', (_, urls, expected) => {
  expect(splitUrls(urls)).toEqual(expected);
});

it.each([
  ['nats_1', true],
  ['[::1]:4222', true],
  ['one.example:1', true],
  ['::1', false],
  ['me@one', false],
  ['nats://one', false],
])('%s is a server without a scheme: %s', (text, expected) => {
  expect(isBareServer(text)).toBe(expected);
});
