import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Proves knowledge of the key, without the key. `OneTimeCodes` of the same key accepts the code once. */
export function oneTimeCode(key: string): string {
  const id = randomBytes(12).toString('hex');
  return `${id}.${signatureOf(key, id)}`;
}

/** Accepts each code of its key once. The key is new for each object, so no code outlives the process, whatever its clock says. */
export class OneTimeCodes {
  readonly key = randomBytes(32).toString('base64url');
  readonly #used = new Set<string>();

  take(code: string): boolean {
    const [, id = '', signature = ''] = /^([0-9a-f]{24})\.([\w-]{43})$/.exec(code) ?? [];
    const expected = Buffer.from(signatureOf(this.key, id));
    if (signature === '' || !timingSafeEqual(Buffer.from(signature), expected)) return false;
    if (this.#used.has(id)) return false;
    this.#used.add(id);
    return true;
  }
}

function signatureOf(key: string, id: string): string {
  return createHmac('sha256', key).update(`one-time code ${id}`).digest('base64url');
}
