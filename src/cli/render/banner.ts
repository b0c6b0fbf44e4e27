import type { Readiness } from '../dependencies.ts';
import { type Palette, voiceOf } from './palette.ts';

export interface BannerFacts extends Readiness {
  readonly data: string;
  /** The command that talks with the agents. */
  readonly chat: string;
  /** The console's address, or the command that prints it; null: there is none. */
  readonly console?: string | null;
}

/** What a person reads when the daemon is ready: where it is, who is there, and what to type next. */
export function renderBanner(facts: BannerFacts, palette: Palette): string {
  const { pid, nats, http, agents, store, daemon, data, chat, console } = facts;
  const row = (name: string, value: string) => `  ${palette.dim(name.padEnd(7))} ${value}`;
  return [
    '',
    `${palette.bold('Parley is up')} ${palette.dim(`(process ${pid})`)}`,
    '',
    row('nats', nats),
    row('http', http ?? 'off'),
    row('data', `${data} ${palette.dim(`(${store} store)`)}`),
    ...(daemon ? [row('daemon', daemon)] : []),
    row('agents', agents.map((slug) => voiceOf(slug, palette)(slug)).join(', ')),
    '',
    `Talk with them, in another terminal:  ${palette.bold(chat)}`,
    ...(console ? [`Or in a browser:  ${palette.bold(console)}`] : []),
    palette.dim('Ctrl-C stops it.'),
    '',
  ].join('\n');
}
