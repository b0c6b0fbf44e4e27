import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { MsgHdrsImpl } from 'nats';
import { getEd25519Helper, setEd25519Helper } from 'nkeys.js/lib/helper.js';

/** Changes of the client library, in effect once this module is loaded. */

/**
 * Lets Node sign the challenges of servers. The client library signs in JavaScript, which takes longer than the rest of a
 * connection's handshake.
 */

/** A private key of Ed25519 as PKCS #8, before its 32 bytes; a public key as SPKI, before its 32 bytes. */
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX_BYTES = 12;
const SEED_BYTES = 32;

function keyOf(seed: Uint8Array) {
  return createPrivateKey({ key: Buffer.concat([PRIVATE_PREFIX, seed]), format: 'der', type: 'pkcs8' });
}

setEd25519Helper({
  ...getEd25519Helper(),
  fromSeed(seed) {
    const spki = createPublicKey(keyOf(seed)).export({ format: 'der', type: 'spki' });
    const publicKey = new Uint8Array(spki.subarray(SPKI_PREFIX_BYTES));
    return { publicKey, secretKey: new Uint8Array([...seed, ...publicKey]) };
  },
  // The secret key is the seed and the public key.
  sign: (data, secretKey) => new Uint8Array(sign(null, data, keyOf(secretKey.subarray(0, SEED_BYTES)))),
});

/**
 * nats.js 2.29 throws for a header line that it would not write itself, and then reads nothing more from its connection.
 * A publisher may write any bytes there, so such lines are dropped, in every message that is received.
 */
const KNOWN_LINE = /^[\x21-\x39\x3b-\x7e]+:[^\r\n]*$/;

const { decode } = MsgHdrsImpl;

MsgHdrsImpl.decode = (bytes) => {
  try {
    return decode(bytes);
  } catch {
    const [first = '', ...lines] = new TextDecoder().decode(bytes).split('\r\n');
    const kept = lines.filter((line) => KNOWN_LINE.test(line));
    return decode(new TextEncoder().encode([first, ...kept, '', ''].join('\r\n')));
  }
};
