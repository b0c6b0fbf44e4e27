import { ParleyError } from '../../kernel/index.ts';
import type { Door } from '../port.ts';

/** One verb of the request API; a refusal is thrown. */
export async function ask<Answer>(
  door: Door,
  endpoint: string,
  body: object,
  publisher: string | null = null,
): Promise<Answer> {
  const answer = await door.request({ endpoint, publisher, body });
  if (answer.ok) return answer.body as Answer;
  throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
}

/** Where a post is, or was. */
export interface Posted {
  readonly index: number;
  readonly agents: readonly string[];
  /** Its id was in the log already. */
  readonly duplicate: boolean;
}
