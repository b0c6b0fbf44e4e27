/** The requests and answers about what-ifs, as far as the console reads them. */

export interface WhatIfStart {
  readonly agent: string;
  readonly at: number;
  readonly start: 'turn' | 'answer';
  readonly model?: string;
  readonly persona?: string;
  readonly runs: number;
}

export interface WhatIfUsed {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  readonly unpricedCalls: number;
}

export interface WhatIf {
  readonly id: string;
  readonly agent: string;
  readonly state: 'queued' | 'running' | 'done' | 'interrupted' | 'stopped' | 'limited';
  /** Why it is `limited`. */
  readonly reason?: string;
  readonly startedAt: string;
  readonly change: { readonly model: string | null; readonly persona: boolean };
  readonly done: number;
  readonly total: number;
}

export interface WhatIfOutcome {
  readonly content: string | null;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly used: WhatIfUsed;
}

export interface WhatIfRun extends WhatIfOutcome {
  readonly verdict: 'same' | 'different' | 'diverged' | 'failed' | 'interrupted';
  readonly duration: number;
  /** Why it failed. */
  readonly message?: string;
}

export interface WhatIfTurn {
  readonly at: number;
  readonly recorded: WhatIfOutcome;
  readonly control: readonly WhatIfRun[];
  readonly changed: readonly WhatIfRun[];
  readonly failure?: { readonly message: string };
  readonly truncated?: true;
}

export interface WhatIfResult extends WhatIf {
  readonly results: readonly WhatIfTurn[];
}
