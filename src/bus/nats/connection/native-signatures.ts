import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { getEd25519Helper, setEd25519Helper } from 'nkeys.js/lib/helper.js';

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
