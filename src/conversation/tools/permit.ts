/** The tools by which a coding agent in another process asks for a permission, by the kind of its call. */
export const PERMIT = { edit: 'permit_edit', execute: 'permit_execute', other: 'permit_other' } as const;

/** Parley calls them for the program: no agent is offered them. */
export const PERMITS: ReadonlySet<string> = new Set(Object.values(PERMIT));

/** Their result if the call may run. */
export const PERMITTED = 'permitted';
