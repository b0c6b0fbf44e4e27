/** The tools by which a coding agent in another process asks for a permission, by the kind of its call. */
export const PERMIT = { edit: 'permit_edit', execute: 'permit_execute', other: 'permit_other' } as const;

/** Their result if the call may run. */
export const PERMITTED = 'permitted';
