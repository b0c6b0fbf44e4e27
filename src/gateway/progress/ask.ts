import type { AnswerOf, Verb } from '../../bus/contract.ts';
import type { ApiRequest } from '../../bus/port.ts';
import type { Stopped } from '../../conversation/index.ts';
import { ParleyError, refusal } from '../../kernel/index.ts';
import type { Role } from '../guard/access.ts';
import type { GatewayPort } from '../port.ts';

/** The owner of the token. */
export interface Caller {
  readonly publisher: string | null;
  readonly name?: string | undefined;
  readonly role?: Role;
  /** The trace context of its request. */
  readonly traceparent?: string | undefined;
}

/** The caller's fields of an `ApiRequest`. */
export function callerOf({
  publisher,
  name,
  role,
  traceparent,
}: Caller): Pick<ApiRequest, 'publisher' | 'name' | 'mayOperate' | 'traceparent'> {
  const more = {
    ...(role !== undefined && { mayOperate: role === 'operate' }),
    ...(traceparent !== undefined && { traceparent }),
  };
  return publisher === null ? { publisher, ...more } : { publisher, name: name ?? null, ...more };
}

/** One verb of the request API; a refusal is thrown. */
export async function ask<V extends Verb>(
  daemon: GatewayPort,
  verb: V,
  body: object,
  caller: Caller = { publisher: null },
): Promise<AnswerOf<V>> {
  const answer = await daemon.request({ endpoint: verb, ...callerOf(caller), body });
  if (answer.ok) return answer.body as AnswerOf<V>;
  throw new ParleyError(answer.refusal.code, answer.refusal.message, answer.refusal);
}

/** The answer, or this if there is no such thing. */
export async function orElse<T, U>(answer: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ParleyError && error.code === 'NOT_FOUND') return otherwise;
    throw error;
  }
}

/** The result of a post, here or of an earlier one. */
export type Posted = Pick<AnswerOf<'post'>, 'index' | 'agents' | 'duplicate' | 'unknownMentions' | 'ignored'>;

/** Agents of a post that a person has stopped. */
export async function stoppedOf(
  daemon: GatewayPort,
  conversation: string,
  routed: readonly string[],
): Promise<Stopped> {
  const found = routed.length === 0 ? null : await ask(daemon, 'conversation', { conversation });
  const stopped = routed.filter((slug) => found?.agents?.[slug]?.status === 'stopped');
  const verb = stopped.length === 1 ? 'is stopped: it answers' : 'are stopped: they answer';
  const message = `${stopped.join(', ')} ${verb} after \`parley resume ${conversation}\``;
  return { agents: stopped, refusal: refusal('AGENT_STOPPED', message, 'the message is in the log') };
}
