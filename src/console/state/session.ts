import { computed, effect, signal } from '@preact/signals';
import { isPersonName, LONGEST_NAME, namesOfAgents } from '../../conversation/text/look-alikes.ts';
import {
  drafted,
  keepDraftsOf,
  keptSet,
  markSession,
  newMark,
  onStored,
  sessionMark,
  store,
} from '../api/browser.ts';
import type { Identity, Sender } from '../api/requests.ts';
import { isRetryable, RequestError, requests, signIn, signOut, Unreachable } from '../api/requests.ts';
import type { AgentCard, Phase, Workflow } from '../model/answers.ts';

/** The user of this tab, with name and theme, and the agents, workflows and phases of the daemon. */

export type Access = 'asking' | 'token-needed' | 'granted' | 'unreachable';

export const access = signal<Access>('asking');
export const identity = signal<Identity | null>(null);
export const agents = signal<readonly AgentCard[]>([]);
export const models = signal<readonly string[]>([]);
/** It answers if no other rule decides. */
export const defaultAgent = signal('');
export const phases = signal<readonly Phase[]>([]);
export const workflows = signal<readonly Workflow[]>([]);
const NAME = 'parley.name';
/** The person's name on messages; empty: the publisher. */
export const signature = signal(localStorage.getItem(NAME) ?? '');

export interface Notice {
  readonly text: string;
  readonly hint: string;
  readonly isUnreachable?: boolean;
  /** The action succeeded, and this takes it back; null: nothing does. */
  readonly undo?: (() => void) | null;
  readonly href?: string;
  /** The place of the unsent text that it is about: without that text, it is over. */
  readonly about?: string;
}
/** The failure of the last action, or what it did where the page does not show that. */
export const notice = signal<Notice | null>(null);
/** The address where it was said: that of the page to which its action has led. */
export let saidAt = '';
notice.subscribe(() => (saidAt = location.hash));
effect(() => {
  const { about } = notice.value ?? {};
  if (about !== undefined && !drafted.value.has(about)) notice.value = null;
});

/** The daemon does not answer. The page shows it once, not for each request. */
export const isAway = signal(false);
isAway.subscribe((isNow) => {
  if (!isNow && notice.peek()?.isUnreachable)
    notice.value = { text: 'Your last action was not confirmed', hint: 'Repeat it if it was not done.' };
});

export async function enter(): Promise<void> {
  try {
    identity.value = await requests.identity();
    keepDraftsOf(owner.value);
    const [roster, table, runs] = await Promise.all([
      requests.agents(),
      requests.phases(),
      requests.workflows(),
    ]);
    agents.value = roster.agents;
    models.value = roster.models ?? [];
    defaultAgent.value = roster.default ?? '';
    phases.value = table.phases;
    workflows.value = runs.workflows;
    access.value = 'granted';
  } catch (error) {
    const isRefused = error instanceof RequestError && error.status === 401;
    access.value = isRefused ? 'token-needed' : 'unreachable';
  }
}

/** A browser that is signed in stays so, and says it: no link changes the user. */
export async function enterByCode(code: string): Promise<void> {
  if (sessionMark() !== '') await enter();
  const hint = 'Sign out on the page “Team and system” before you open an address for another person.';
  if (access.value === 'granted') notice.value = { text: `You are signed in as ${me.value}`, hint };
  else await enterWith(`Code ${code}`);
  if (access.value === 'asking') await enter(); // the code was refused
}

/** Signs this browser in: `Bearer` and a token, or `Code` and the code of an address. */
export async function enterWith(authorization: string): Promise<void> {
  const mark = newMark();
  if (!(await attempt(() => signIn(authorization, mark)))) return;
  markSession(mark);
  if (identity.value !== null) return location.reload();
  await enter();
  if (access.value === 'token-needed')
    notice.value = { text: 'This browser did not keep the cookie', hint: 'allow cookies of this page' };
}

export async function leaveSession(): Promise<void> {
  if (!(await attempt(signOut))) return;
  markSession(newMark());
  location.reload();
}

export function sign(name: string): void {
  signature.value = name;
  store(localStorage, NAME, name);
}

export const isOperator = computed(() => identity.value?.role === 'operate');
export const mayPost = computed(() => isOperator.value || identity.value?.role === 'post');
export const mayApprove = computed(() => isOperator.value || identity.value?.role === 'approve');

export const rights = { operate: isOperator, post: mayPost, approve: mayApprove };
export type Right = keyof typeof rights;

/** Why there is no control, and whom to ask. */
export const refused = (what: string, right: Right): string =>
  `Your token may ${what}. A token with the role ${right === 'operate' ? '' : `${right} or `}operate may.`;

/** Whom a post belongs to that names neither publisher nor author; empty: the token may act as anyone. */
export const owner = computed(() =>
  [identity.value?.publisher, identity.value?.name].filter((part) => part).join('/'),
);

export const publisher = computed(() => identity.value?.publisher ?? 'console');

/** The name on this person's messages; empty: the publisher signs them. */
const nameOnPosts = computed(() => identity.value?.name ?? signature.value.trim());

/** The id that this person's messages have. */
export const me = computed(() =>
  nameOnPosts.value === '' ? publisher.value : `${publisher.value}/${nameOnPosts.value}`,
);

const signed = keptSet('parley.signed', 50);

/** The ids that messages of this browser had, and the one that they have now. */
export const myIds = computed<ReadonlySet<string>>(() => new Set([...signed.texts.value, me.value]));

/** Keeps the id of a message that is sent: its conversation is also mine under another name. */
export function noteSigned(): void {
  signed.put(me.value, true);
}

export const nameOfMe = computed(() => me.value.slice(me.value.indexOf('/') + 1));

/** Why the daemon would refuse the name; null: it fits, or the publisher signs. */
export const nameFault = computed<string | null>(() => {
  const name = signature.value.trim();
  if (name === '' || identity.value?.name) return null;
  if (!isPersonName(name))
    return `A name has at most ${LONGEST_NAME} characters, without brackets and control characters.`;
  const taken = namesOfAgents(agents.value.flatMap((agent) => [agent.slug, agent.name]));
  return taken.has(name) ? `“${name}” is the name of an agent. Choose another one.` : null;
});

export function sender(): Sender {
  const name = signature.value.trim();
  return {
    ...(identity.value?.publisher === null && { publisher: publisher.value }),
    ...(name !== '' && identity.value?.name === null && { author: { name } }),
  };
}

/** Runs a request. False: it was refused, and the person sees the reason. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    notice.value = null;
    return true;
  } catch (error) {
    report(error);
    return false;
  }
}

export function report(error: unknown): void {
  if (error instanceof RequestError && error.status === 401) access.value = 'token-needed';
  const isUnreachable = error instanceof Unreachable || (isAway.peek() && isRetryable(error));
  const hint = error instanceof Unreachable ? 'Try again when it is connected.' : hintOf(error);
  notice.value = { text: error instanceof Error ? error.message : String(error), hint, isUnreachable };
}

/** The daemon's hints on these name fields and options, which the page has under other names. */
const OF_A_NAME = ['AUTHOR_IS_AN_AGENT', 'INVALID_AUTHOR'];

export function hintOf(error: unknown): string {
  if (!(error instanceof RequestError)) return '';
  return OF_A_NAME.includes(error.code) ? 'Choose another name for your messages.' : error.hint;
}

/** Light, dark, or as the system is. Kept in this browser. */
export const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const THEME = 'parley.theme';
const kept = (): Theme => THEMES.find((one) => one === localStorage.getItem(THEME)) ?? 'system';
export const theme = signal<Theme>(kept());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
onStored(THEME, () => (theme.value = kept()));

export function chooseTheme(next: Theme): void {
  theme.value = next;
  store(localStorage, THEME, next);
}
