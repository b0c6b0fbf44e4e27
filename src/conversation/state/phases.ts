/** Everything there is to say about a phase. */
export interface PhaseSpec {
  readonly description: string;
  /** Phases an agent may enter from here. The same phase again is always allowed. */
  readonly next: readonly string[];
}

/** By phase name. Configuration adds to the built-in table or replaces rows of it. */
export type PhaseTable = Readonly<Record<string, PhaseSpec>>;

export const FIRST_PHASE = 'chat';

export const BUILT_IN_PHASES = {
  chat: { description: 'talk freely and find out what is wanted', next: ['execute', 'plan', 'brainstorm'] },
  brainstorm: { description: 'collect ideas without judging them', next: ['chat', 'plan', 'execute'] },
  plan: { description: 'decide what will be done, in which order, by whom', next: ['execute'] },
  execute: { description: 'do the work', next: ['verification', 'chat'] },
  verification: { description: 'check that the work holds', next: ['chores', 'execute', 'chat'] },
  chores: { description: 'tidy up: documentation, changelog, loose ends', next: ['reflection'] },
  reflection: { description: 'say what was learned', next: ['chat'] },
} as const satisfies PhaseTable;

export type BuiltInPhase = keyof typeof BUILT_IN_PHASES;
