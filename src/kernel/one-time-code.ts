import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Takes the same time wherever two texts of one length differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Proves knowledge of the key, without the key. `OneTimeCodes` of the same key accepts the code once. `subject`: a number. */
export function oneTimeCode(key: string, subject: number): string {
  const claim = `${randomBytes(12).toString('hex')}.${subject}`;
  return `${claim}.${signatureOf(key, claim)}`;
}

/** Accepts each code of its key once. The key is new for each object, so no code outlives the process, whatever its clock says. */
export class OneTimeCodes {
  readonly key = randomBytes(32).toString('base64url');
  readonly #used = new Set<string>();

  /** The subject of the code; null: it is not valid, or was taken. */
  take(code: string): number | null {
    const [, claim = '', subject, signature = ''] =
      /^([0-9a-f]{24}\.(\d{1,6}))\.([\w-]{43})$/.exec(code) ?? [];
    if (!isSameSecret(signature, signatureOf(this.key, claim))) return null;
    if (this.#used.has(claim)) return null;
    this.#used.add(claim);
    return Number(subject);
  }
}

function signatureOf(key: string, claim: string): string {
  return createHmac('sha256', key).update(`one-time code ${claim}`).digest('base64url');
}
