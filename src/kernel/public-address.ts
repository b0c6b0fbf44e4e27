import ipaddr from 'ipaddr.js';

/** Addresses that a stranger's URL may lead to. Imported directly: most commands load no `ipaddr.js`. */

/** 2000::/3. `ipaddr.js` also takes the old IPv4-compatible addresses for public ones. */
const GLOBAL_IPV6 = /^[23][0-9a-f]{3}:/;

/** `public`, or the kind of another range: `loopback`, `private`, `linkLocal`, `ipv4Mapped` and others. */
export function reachOf(text: string): string {
  const address = ipaddr.parse(text);
  const range = address.range();
  if (range !== 'unicast') return range;
  return address.kind() === 'ipv4' || GLOBAL_IPV6.test(address.toString()) ? 'public' : 'reserved';
}
