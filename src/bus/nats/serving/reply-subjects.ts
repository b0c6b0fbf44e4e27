/**
 * Restricts the subjects to which the daemon answers. A requester chooses the reply subject, but the server checks the
 * daemon's rights there, not the requester's.
 *
 * REPLY-SUBJECT-1  Only inboxes get an answer, and `_R_.>`, by which the server forwards it into another account. Only accounts of
 *          their own (`parley nats-config`) keep users from naming each other's inboxes.
 * REPLY-SUBJECT-2  A request with another reply subject is not executed.
 */
export function mayAnswerTo(reply: string): boolean {
  return /^(_INBOX|_R_)\../.test(reply);
}

export const REPLY_HINT = 'use a reply subject below _INBOX., as client libraries do';
