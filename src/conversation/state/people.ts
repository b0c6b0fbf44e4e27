import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Author, Entry, MessageEntry } from '../log/entry.ts';
import { namesOfAgents } from '../text/look-alikes.ts';
import type { Roster } from './roster.ts';

/**
 * Who a person is: a publisher, and the name that the person signs with. See docs/guides/security.md.
 *
 * PERSON-1  Rights belong to the publisher. A name is a signature and gives none.
 * PERSON-2  Credentials bind a publisher: their owner acts as no other publisher.
 * PERSON-3  Neither the publisher nor the name is that of a configured agent, or looks like one (L17). Hired agents have names
 *           of their own, which end in `(hired)`: hiring takes no name from a person.
 * PERSON-4  Only an approver answers approvals. It releases no call that answers a request of the same publisher unless
 *           the configuration allows that. Each publisher may deny a call that answers its own request.
 * PERSON-5  A name that nothing binds to its publisher is shown with the publisher: `alice as Bob`. The log stores both.
 * PERSON-6  A post starts a workflow if an operator sends it, or if the publisher's row in `publishers` names the workflow.
 * PERSON-7  The session that a post names becomes that of the agents that it wakes if an operator sends it, or if the publisher's
 *           row in `publishers` allows it. Otherwise the post is accepted, and the answer names the field as ignored.
 *
 * A refusal has the same text for a post, an answer and a command, on the bus and over HTTP.
 */

/** The name that a person signs with, from the id in the log: `Bob` of `alice/Bob`, `alice` of `alice`. */
function signatureOf(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

/** The publisher of a person's id in the log: `alice` of `alice` and of `alice/Bob`. */
export function publisherOf(id: string): string {
  return id.split('/', 1)[0] ?? id;
}

/** A message of a person, and no result that a person's program gave to a call. */
export function isOfAPerson(entry: Entry | undefined): entry is MessageEntry {
  return entry?.type === 'message' && entry.author.kind === 'person' && entry.role !== 'tool';
}

/** The publisher whose post this entry is; null: it is none. An id of a post is unique for its publisher (L4). */
export function publisherOfPost(entry: Entry): string | null {
  return isOfAPerson(entry) ? publisherOf(entry.author.id) : null;
}

/** PERSON-4. The list of approvers applies to the operator only when it acts under the name of a publisher. */
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
export function refusalOfOwnApproval(id: string): Refusal {
  return refusal(
    'FORBIDDEN',
    `${id} may not approve a call that answers a request of ${publisherOf(id)}`,
    'another approver may, and you may deny it; approvals.ownRequests: true in parley.yaml allows it',
  );
}

/** GRANTS-1 */
export function refusalOfGrant(id: string): Refusal {
  const hint = 'approve this call alone, or give a rule in tools.policy of parley.yaml';
  return refusal('FORBIDDEN', `only an operator may allow later calls, and ${id} is none here`, hint);
}

/** PERSON-1, PERSON-4. `id`: the person's id in the log, `alice` or `alice/Bob`. */
export function refusalOfApproval(id: string): Refusal {
  const publisher = publisherOf(id);
  const named =
    id === publisher ? '' : `, and ${JSON.stringify(id.slice(publisher.length + 1))} is a signature`;
  return refusal(
    'FORBIDDEN',
    `${id} may not answer approvals`,
    `approvals.approvers in parley.yaml lists the publishers that may; the publisher here is ${publisher}${named}`,
  );
}

/** PERSON-6. `allowed`: the workflows of the publisher's row. Null: it may start this one. */
export function refusalOfWorkflow(
  publisher: string,
  workflow: string,
  allowed: readonly string[],
): Refusal | null {
  if (allowed.includes('*') || allowed.includes(workflow)) return null;
  const known = allowed.length > 0 ? `it may start ${allowed.join(', ')}; ` : '';
  return refusal(
    'FORBIDDEN',
    `${publisher} may not start the workflow ${workflow}`,
    `${known}an operator may start any, and publishers.${publisher}.workflows in parley.yaml lists what this publisher may start`,
  );
}

export function refusalOfOtherPublisher(own: string, other: unknown): Refusal {
  const named = typeof other === 'string' ? other : (JSON.stringify(other) ?? 'no name');
  return refusal(
    'FORBIDDEN',
    `the credentials are those of ${own}: they may not act as ${named}`,
    'leave `publisher` and `author` out of the body, or use other credentials',
  );
}

/** PERSON-3. Null: neither name belongs to an agent. */
export function refusalOfAgentName(
  { id, name }: Pick<Author, 'id' | 'name'>,
  roster: Roster,
): Refusal | null {
  const names = agentNamesOf(roster);
  const taken = [id.split('/')[0] ?? id, name, signatureOf(id)].find((one) => names.has(one));
  if (taken === undefined) return null;
  return refusal(
    'AUTHOR_IS_AN_AGENT',
    `${JSON.stringify(taken)} is the name of an agent; people may not use it`,
    'sign with another name, or act as another publisher (`author.name` and `publisher` in a body, --as and --publisher of a command)',
  );
}

const agentNames = new WeakMap<Roster, Names>();

type Names = ReturnType<typeof namesOfAgents>;

function agentNamesOf(roster: Roster): Names {
  const known = agentNames.get(roster);
  if (known) return known;
  const configured = [...roster.agents.values()].filter(({ slug }) => !roster.hired?.has(slug));
  const names = namesOfAgents(configured.flatMap((agent) => [agent.name, agent.slug]));
  agentNames.set(roster, names);
  return names;
}
