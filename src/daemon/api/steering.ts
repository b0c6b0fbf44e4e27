import type { RequestOf } from '../../bus/index.ts';
import type { Author, Command } from '../../conversation/index.ts';

/** The commands of an operator on a conversation that exists. */

export type SteeringVerb = 'label' | 'hire' | 'dismiss' | 'stop' | 'resume';

export function labelCommand({ title, archived }: RequestOf<'label'>, by: Author): Command {
  return { type: 'label', title, archived, by };
}

export function hireCommand(
  { conversation: _, publisher: __, author: ___, ...agent }: RequestOf<'hire'>,
  by: Author,
): Command {
  return { type: 'hire', agent, by };
}

export function dismissCommand({ agent, reason }: RequestOf<'dismiss'>, by: Author): Command {
  return { type: 'dismiss', agent, reason, by };
}

export function stopCommand({ agent = null }: RequestOf<'stop'>, by: Author): Command {
  return { type: 'stop', agent, by };
}

export function resumeCommand({ agent = null, stop }: RequestOf<'resume'>, by: Author): Command {
  return { type: 'resume', agent, stop, by };
}
