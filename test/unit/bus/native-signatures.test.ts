import { nkeys } from 'nats';
import { getEd25519Helper } from 'nkeys.js/lib/helper.js';
import { describe, expect, it } from 'vitest';
import '../../../src/bus/nats/connection/client-patches.ts';

const { fromSeed, sign } = getEd25519Helper();
const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));

describe('a signature of a challenge', () => {
  it('keys and signatures are those of RFC 8032', () => {
    const seed = bytes('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb');
    const { publicKey, secretKey } = fromSeed(seed);
    expect(publicKey).toEqual(bytes('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'));
    expect(secretKey).toEqual(new Uint8Array([...seed, ...publicKey]));
    expect(sign(bytes('72'), secretKey)).toEqual(
      bytes(
        '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
          '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
      ),
    );
  });

  it("the client library verifies a new user's signature in JavaScript, and refuses that of another text", () => {
    const user = nkeys.createUser();
    const text = new TextEncoder().encode('nonce');
    const publicUser = nkeys.fromPublic(user.getPublicKey());
    expect(publicUser.verify(text, user.sign(text))).toBe(true);
    expect(publicUser.verify(bytes('00'), user.sign(text))).toBe(false);
  });
});
