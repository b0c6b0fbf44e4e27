import type { Answerers, Floor } from '../../conversation/state/answering.ts';
import { agentByState, FIRST_FLOOR, mentions } from '../../conversation/state/answering.ts';
import type { Thread } from './thread/thread.ts';

/** Who gets a message while it is written, by the rules of the daemon (`conversation/decide/posting.ts`), and the completion of `@slug`. */

export interface Recipients {
  readonly slugs: readonly string[];
  /** One of them waits for this answer. */
  readonly isAnswer: boolean;
  /** Agents at work that do not get it, where none of the others has a turn. */
  readonly missed: readonly string[];
  /** It alone is stopped, and reads this only when a person resumes or names it. */
  readonly isHeld: boolean;
  readonly unknown: readonly string[];
}

type Agent = Answerers['agents'] extends ReadonlyMap<string, infer One> ? One : never;

/** `thread`: null for a new conversation. */
export function recipientsOf(
  content: string,
  thread: Thread | null,
  agents: readonly Agent[],
  defaultAgent: string,
): Recipients {
  const hired = (thread?.hired ?? []).map(({ slug }): Agent => ({ slug, phases: [], modes: [] }));
  const team = { agents: new Map([...agents, ...hired].map((one) => [one.slug, one])), defaultAgent };
  const askers = (thread?.questions ?? []).map(({ agent }) => agent).filter((slug) => team.agents.has(slug));
  const { known: mentioned, unknown } = mentions(content, team);
  const statusOf = (slug: string) => thread?.agents.get(slug)?.status ?? 'idle';
  const isBusy = (slug: string) => statusOf(slug) !== 'idle' || thread?.stateOf(slug).isStopped === true;
  const next = askers[0] ?? agentByState(thread?.floor ?? FIRST_FLOOR, team, isBusy);
  const slugs = mentioned.length > 0 ? mentioned : [next];
  const running = [...(thread?.agents.keys() ?? [])].filter((slug) => statusOf(slug) === 'running');
  const hasTurn = slugs.some((slug) => statusOf(slug) !== 'idle');
  return {
    slugs,
    isAnswer: slugs.some((slug) => askers.includes(slug)),
    missed: hasTurn ? [] : running,
    isHeld: mentioned.length === 0 && !thread?.isStopped && thread?.stateOf(next).isStopped === true,
    unknown,
  };
}

/** Why this agent answers a message that names none, after "because". */
export function whyItAnswers(
  slug: string,
  isAnswer: boolean,
  floor: Floor,
  agents: readonly Agent[],
): string {
  const { mode, phase, activeAgent, run } = floor;
  const agent = agents.find((one) => one.slug === slug);
  if (isAnswer) return 'its question is open';
  const visit = mode === 'run' ? (run?.branches ?? [run]).find((one) => one?.agent === slug) : null;
  if (visit) return `the run of ${run?.workflowId} is at ${visit.node}`;
  if (mode === 'agent' && activeAgent === slug) return 'it has the floor';
  if (agent?.phases.includes(phase)) return `it works in the phase ${phase}`;
  if (agent?.modes.includes(mode)) return `it works in the mode ${mode}`;
  return 'it is the default agent, and no other one works in this phase or mode';
}

type Mention = NonNullable<ReturnType<typeof mentionAt>>;

export function mentionAt(text: string, cursor: number) {
  const found = /(?:^|[^\p{L}\p{M}\p{N}_/\\])@([\p{L}\p{N}-]*)$/iu.exec(text.slice(0, cursor));
  if (!found) return null;
  const typed = found[1] ?? '';
  return { from: cursor - typed.length - 1, typed };
}

/** Agents whose slug or name begins with the text; slugs first. */
export function candidates<T extends { readonly slug: string; readonly name: string }>(
  agents: readonly T[],
  typed: string,
): T[] {
  const wanted = typed.toLowerCase();
  const bySlug = agents.filter(({ slug }) => slug.startsWith(wanted));
  const others = agents.filter((agent) => !bySlug.includes(agent));
  const byName = others.filter(({ name }) =>
    ` ${name.toLowerCase()}`.replace(/\s/g, ' ').includes(` ${wanted}`),
  );
  return [...bySlug, ...byName];
}

export function completed(text: string, mention: Mention, slug: string): { text: string; cursor: number } {
  const before = `${text.slice(0, mention.from)}@${slug} `;
  const after = text.slice(mention.from + 1 + mention.typed.length).replace(/^ /, '');
  return { text: before + after, cursor: before.length };
}
