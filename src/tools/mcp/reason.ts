import { messageOf } from '../../kernel/index.ts';
import type { McpServerSettings } from './settings.ts';

const LONGEST = 600;
/** Shorter secrets occur in ordinary words, so masking them would reveal them. */
const SHORTEST_SECRET = 4;

/** Formats an error: with its cause, without the server's secrets, with limited length. */
export type Reason = (error: unknown) => string;

export function reasonFor(settings: McpServerSettings): Reason {
  const secrets = Object.values(settings.transport === 'http' ? settings.headers : settings.env)
    .flatMap((secret) => {
      const value = secret.reveal();
      return [value, value.replace(/^(?:Bearer|Basic) /i, '')];
    })
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort((a, b) => b.length - a.length);
  return (error) => {
    const text = secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), withCause(error));
    return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
  };
}

function withCause(error: unknown): string {
  const message = messageOf(error);
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause === undefined) return message;
  const because = withCause(cause);
  return message.includes(because) ? message : `${message}: ${because}`;
}
