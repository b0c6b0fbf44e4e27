import { computed, signal } from '@preact/signals';
import {
  type AgentCard,
  type Identity,
  RequestError,
  requests,
  type Sender,
  tokenFor,
} from '../api/requests.ts';
import { keepName, keepToken, readName, readToken } from '../api/session.ts';

/** Who uses this tab, and what the daemon has for everybody. */

export type Access = 'asking' | 'token-needed' | 'granted' | 'unreachable';

export const access = signal<Access>('asking');
export const identity = signal<Identity | null>(null);
export const agents = signal<readonly AgentCard[]>([]);
export const phases = signal<readonly { readonly phase: string; readonly description: string }[]>([]);
export const workflows = signal<readonly { readonly id: string }[]>([]);
/** How a person signs; empty: as the publisher. */
export const signature = signal(readName());

export interface Notice {
  readonly text: string;
  readonly hint: string;
  /** The daemon gave no answer. */
  readonly isUnreachable?: boolean;
}
/** What went wrong with the last thing that was done here. */
export const notice = signal<Notice | null>(null);

/** Reads who this is and who is there; asks for a token where one is needed. */
export async function enter(): Promise<void> {
  try {
    identity.value = await requests.identity();
    const [roster, table, runs] = await Promise.all([
      requests.agents(),
      requests.phases(),
      requests.workflows(),
    ]);
    agents.value = roster.agents;
    phases.value = table.phases;
    workflows.value = runs.workflows;
    access.value = 'granted';
  } catch (error) {
    const isRefused = error instanceof RequestError && error.status === 401;
    if (isRefused) keepToken(null);
    access.value = isRefused ? 'token-needed' : 'unreachable';
  }
}

/** A token that this tab has and the daemon knows stays: no link changes who acts here. */
export async function enterByCode(code: string): Promise<void> {
  if (readToken() !== null) await enter();
  if (access.value === 'granted') return;
  const isIn = await attempt(async () => keepToken(await tokenFor(code)));
  if (isIn) await enter();
}

export async function enterWith(token: string): Promise<void> {
  keepToken(token);
  await enter();
  if (access.value === 'token-needed')
    notice.value = { text: 'This token is not known here', hint: 'look for typing errors' };
  else notice.value = null;
}

export function sign(name: string): void {
  signature.value = name;
  keepName(name);
}

/** Who acts here; the name that a person signs with is no part of it. */
export const publisher = computed(() => identity.value?.publisher ?? 'console');

/** Who posts, answers and switches here. */
export function sender(): Sender {
  const name = signature.value.trim();
  return {
    ...(identity.value?.publisher === null && { publisher: publisher.value }),
    ...(name !== '' && identity.value?.name === null && { author: { name } }),
  };
}

/** Does something at the daemon; what it refuses is said to the person. False: it was refused. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    notice.value = null;
    return true;
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) access.value = 'token-needed';
    const isUnreachable = !(error instanceof RequestError);
    const hint = isUnreachable ? 'is the daemon running?' : error.hint;
    notice.value = { text: error instanceof Error ? error.message : String(error), hint, isUnreachable };
    return false;
  }
}

/** The connection is back. */
export function reachedAgain(): void {
  if (notice.value?.isUnreachable) notice.value = null;
}
