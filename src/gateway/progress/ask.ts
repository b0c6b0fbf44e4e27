import type { ApiRequest } from '../../bus/port.ts';
import { ParleyError, type Refusal, refusal } from '../../kernel/index.ts';
import type { GatewayPort } from '../port.ts';

/** Whose token it is. */
export interface Caller {
  readonly publisher: string | null;
  readonly name?: string | undefined;
}

/** What a request says of it (`ApiRequest`). */
export function callerOf({ publisher, name }: Caller): Pick<ApiRequest, 'publisher' | 'name'> {
  return publisher === null ? { publisher } : { publisher, name: name ?? null };
}

/** One verb of the request API; a refusal is thrown. */
export async function ask<Answer>(
  door: GatewayPort,
  endpoint: string,
  body: object,
  caller: Caller = { publisher: null },
): Promise<Answer> {
  const answer = await door.request({ endpoint, ...callerOf(caller), body });
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

/** Agents that a post was routed to and that a person has stopped. */
export interface Stopped {
  readonly agents: readonly string[];
  readonly refusal: Refusal;
}

export async function stoppedOf(
  door: GatewayPort,
  conversation: string,
  routed: readonly string[],
): Promise<Stopped> {
  type Detail = { readonly agents?: Readonly<Record<string, { readonly status?: string }>> };
  const { agents = {} } =
    routed.length === 0 ? {} : await ask<Detail>(door, 'conversation', { conversation });
  const stopped = routed.filter((slug) => agents[slug]?.status === 'stopped');
  const verb = stopped.length === 1 ? 'is stopped: it answers' : 'are stopped: they answer';
  const message = `${stopped.join(', ')} ${verb} after \`parley resume ${conversation}\``;
  return { agents: stopped, refusal: refusal('AGENT_STOPPED', message, 'the message is in the log') };
}
