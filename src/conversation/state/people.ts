import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Author } from '../log/entry.ts';
import { looksLike } from '../text/look-alikes.ts';
import type { Roster } from './roster.ts';

/**
 * Who a person is: a publisher, and the name that the person signs with. `docs/security.md` has the rule.
 *
 * PERSON-1  Rights belong to the publisher. A name is a signature and gives none.
 * PERSON-2  Credentials bind a publisher: who has them acts as no other.
 * PERSON-3  Neither the publisher nor the name is that of an agent, or looks like it (L17).
 * PERSON-4  Only an approver answers an approval, and releases no call that answers a request of the same publisher unless
 *           the configuration allows it. Each publisher may deny a call that answers its own request.
 * PERSON-5  A name that nothing binds to its publisher is shown with it: `alice as Bob`. The log keeps it so.
 *
 * Each refusal reads the same for a post, an answer and a command, on the bus and over HTTP.
 */

/** The name that a person signs with, from the id in the log: `Bob` of `alice/Bob`, `alice` of `alice`. */
export function signatureOf(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

/** Of a person as the log names it: `alice`, or `alice/Bob`. */
export function publisherOf(id: string): string {
  return id.split('/', 1)[0] ?? id;
}

/** PERSON-4. The operator is bound by the list only under the name of a publisher. */
export function isApprover(
  sender: string | null,
  named: string | undefined,
  approvers: readonly string[],
): boolean {
  const publisher = sender ?? named;
  if (sender === null && (publisher === undefined || approvers.length === 0)) return true;
  return approvers.includes('*') || approvers.includes(publisher ?? '');
}

/** PERSON-4 */
export function mayNotApproveOwn(id: string): Refusal {
  return refusal(
    'FORBIDDEN',
    `${id} may not approve a call that answers a request of ${publisherOf(id)}`,
    'another approver may, and you may deny it; approvals.ownRequests: true in parley.yaml allows it',
  );
}

/** PERSON-1, PERSON-4. `id`: as the log names the person, `alice` or `alice/Bob`. */
export function mayNotApprove(id: string): Refusal {
  const publisher = publisherOf(id);
  const named =
    id === publisher ? '' : `, and ${JSON.stringify(id.slice(publisher.length + 1))} is a signature`;
  return refusal(
    'FORBIDDEN',
    `${id} may not answer approvals`,
    `approvals.approvers in parley.yaml lists the publishers that may; the publisher here is ${publisher}${named}`,
  );
}

/** PERSON-2 */
export function mayNotActAs(own: string, other: unknown): Refusal {
  const said = typeof other === 'string' ? other : (JSON.stringify(other) ?? 'no name');
  return refusal(
    'FORBIDDEN',
    `the credentials are those of ${own}: they may not act as ${said}`,
    'leave `publisher` and `author` out of the body, or use other credentials',
  );
}

/** PERSON-3. Null: neither is an agent's. */
export function agentsName({ id, name }: Pick<Author, 'id' | 'name'>, roster: Roster): Refusal | null {
  const taken = [id.split('/')[0] ?? id, name, signatureOf(id)].find((one) => isAgentName(one, roster));
  if (taken === undefined) return null;
  return refusal(
    'AUTHOR_IS_AN_AGENT',
    `${JSON.stringify(taken)} is the name of an agent; people may not use it`,
    'act as another publisher, or sign with another name (--publisher and --as; `publisher` and `author.name` in a body)',
  );
}

function isAgentName(name: string, roster: Roster): boolean {
  const known = [...roster.agents.values()].flatMap((agent) => [agent.name, agent.slug]);
  // `[agent Dev]: ` is how Dev is attributed where agents' words stand in user messages (V16).
  return known.some((agent) => looksLike(name, agent) || looksLike(name, `agent ${agent}`));
}
