/**
 * The requests of people in a run, and the answers of the model. Pure: the answer depends on the request alone, so
 * a request that is repeated after a crash gets the same one.
 */

export const INTENTS = ['talk', 'look', 'write', 'both', 'delegate', 'handoff'] as const;
export type Intent = (typeof INTENTS)[number];

export const AGENTS = ['pm', 'dev'] as const;

export function persona(agent: string): string {
  return `You are agent ${agent}.`;
}

export function intentText(publisher: string, number: number, wish: Intent): string {
  return `${publisher} says ${number}: please ${wish}`;
}

/** The tools of the run's own server by their names in the daemon: one only reads, the other has an effect. */
export const LOOK = 'mcp__world__look';
export const WRITE = 'mcp__world__write';

export interface ScenarioMessage {
  readonly role: string;
  readonly content: string | null;
}

export interface ScenarioReply {
  readonly text: string | null;
  readonly calls: readonly { readonly name: string; readonly arguments: object }[];
}

export function replyTo(messages: readonly ScenarioMessage[]): ScenarioReply {
  const last = messages.at(-1);
  const said = last?.content ?? '';
  const wish = /please (\w+)$/.exec(said)?.[1];
  const me = /You are agent (\w+)\./.exec(messages[0]?.content ?? '')?.[1];
  const other = AGENTS.find((agent) => agent !== me) ?? AGENTS[0];
  const calls = last?.role === 'user' ? callsFor(wish, other) : [];
  if (calls.length > 0) return { text: null, calls };
  return { text: `Noted, all of it: ${said.slice(0, 60)}`, calls: [] };
}

function callsFor(wish: string | undefined, other: string): ScenarioReply['calls'] {
  const look = { name: LOOK, arguments: { at: 'the world' } };
  const write = { name: WRITE, arguments: { what: 'a line' } };
  switch (wish) {
    case 'look':
      return [look];
    case 'write':
      return [write];
    case 'both':
      return [look, look, write];
    case 'delegate':
      return [{ name: 'delegate', arguments: { to: other, request: 'tell me what you know' } }];
    case 'handoff':
      return [{ name: 'handoff', arguments: { to: other, summary: 'it is yours now' } }];
    default:
      return [];
  }
}
