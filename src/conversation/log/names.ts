/** What names look like. Without schemas, so that commands that check a name load none. */

/** Conversation ids and publisher names. */
export const NAME_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;
export const SLUG_PATTERN = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Publishers of callers that name none: one for each way in. No agent may have such a name (L17). */
export const OWN_PUBLISHERS = ['a2a', 'ag-ui', 'console', 'http', 'mcp', 'openai', 'operator'] as const;
export type OwnPublisher = (typeof OWN_PUBLISHERS)[number];

/** `none` takes it back. */
export const FEEDBACK = ['up', 'down', 'none'] as const;
export type FeedbackValue = (typeof FEEDBACK)[number];

export const MODES = ['chat', 'agent', 'run'] as const;
export type Mode = (typeof MODES)[number];
