import { nkeys } from 'nats';
import { describe, expect, it } from 'vitest';
import '../../../src/bus/nats/connection/client-patches.ts';

describe('nkeys that Node computes', () => {
  const seed = Buffer.from('SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y');

  it('a seed has the public key and the signature that nkeys.js computes', () => {
    const pair = nkeys.fromSeed(seed);
    expect(pair.getPublicKey()).toBe('UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK');
    expect(Buffer.from(pair.sign(Buffer.from('nonce'))).toString('base64url')).toBe(
      '-HTq4d6DDHVNb8MsTRAZtSIa0vXA_yuZblwTA7JT5wYzmKBxJ2wpYfjHh7hcptZlidbVw_6ZLyubjm_yDk-OCQ',
    );
  });

  it('the library verifies the signatures of new keys by their public keys', () => {
    for (const pair of [nkeys.createUser(), nkeys.createAccount(), nkeys.createOperator()]) {
      const data = Buffer.from('any nonce');
      const own = nkeys.fromPublic(pair.getPublicKey());
      expect(own.verify(data, pair.sign(data))).toBe(true);
      expect(own.verify(Buffer.from('another nonce'), pair.sign(data))).toBe(false);
    }
  });
});
