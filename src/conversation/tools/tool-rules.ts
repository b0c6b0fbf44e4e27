import type { Risk } from '../log/entry.ts';

/**
 * What the core must know of tools that act on the world, without knowing any: whether a call may be run, must be
 * asked for, or cannot be carried out. Given from outside; the same call, configuration and links in the project
 * give the same answer.
 */

export type Judgement =
  /** Run it: a safe one beside its neighbours, a risky one alone and in its place. */
  | { readonly kind: 'run'; readonly risk: Risk }
  /** A person decides first. */
  | {
      readonly kind: 'ask';
      readonly risk: 'risky';
      readonly why: string;
      /** Digest of the tool that an approval accepts, where its server changed it. */
      readonly accepts?: string;
    }
  /** An error result for the model: no such tool, not this agent's, wrong arguments, forbidden. */
  | { readonly kind: 'refuse'; readonly code: string; readonly message: string };

export interface ToolCallRequest {
  readonly agent: string;
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
  /** Wire names of the tools that the agent has in its setting. */
  readonly available: readonly string[];
}

export interface ToolRules {
  judge(request: ToolCallRequest): Judgement;
  /** A fingerprint of arguments: what an approval is bound to (L11). */
  fingerprint(text: string): string;
}

/** No tools at all. */
export const NO_TOOLS: ToolRules = {
  judge: ({ name }) => ({ kind: 'refuse', code: 'TOOL_NOT_AVAILABLE', message: `you have no tool ${name}` }),
  fingerprint: (text) => text,
};

/** What became of a call as its runner saw it, for one whose result the log lacks. */
export interface AuditedOutcome {
  readonly index: number;
  readonly position: number;
  /** Null: the call did not run, and cannot run any more unless it is run now. */
  readonly content: string | null;
}

/** What a repair did, for whoever watches. */
export interface RepairCount {
  repaired: number;
  retried: number;
  unknown: number;
}
