import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Says that its maker knows the secret, without the secret. Whoever knows it too takes the code once (`OneTimeCodes`). */
export function oneTimeCode(secret: string): string {
  const id = `${Date.now().toString(36)}.${randomBytes(12).toString('hex')}`;
  return `${id}.${signatureOf(secret, id)}`;
}

/** Takes each code of one secret once, if it was made since this object: none outlives the process that takes them. */
export class OneTimeCodes {
  readonly #secret: string;
  readonly #since = Date.now();
  readonly #used = new Set<string>();

  constructor(secret: string) {
    this.#secret = secret;
  }

  take(code: string): boolean {
    const [, id = '', time = '', signature = ''] =
      /^(([0-9a-z]{1,10})\.[0-9a-f]{24})\.([\w-]{43})$/.exec(code) ?? [];
    const expected = Buffer.from(signatureOf(this.#secret, id));
    if (signature === '' || !timingSafeEqual(Buffer.from(signature), expected)) return false;
    if (Number.parseInt(time, 36) < this.#since || this.#used.has(id)) return false;
    this.#used.add(id);
    return true;
  }
}

function signatureOf(secret: string, id: string): string {
  return createHmac('sha256', secret).update(`one-time code ${id}`).digest('base64url');
}
