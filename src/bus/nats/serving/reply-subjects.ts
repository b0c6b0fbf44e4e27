/**
 * The subjects to which the daemon answers. A requester names the subject of its answer, and the server checks the
 * rights of the daemon there, not those of the requester.
 *
 * REPLY-SUBJECT-1  Only inboxes get an answer, and the subjects `_R_.>`, by which the server itself carries it into another
 *          account. Which inbox belongs to which user is known to the server alone, and only where each user has an
 *          account of its own (`parley nats-config`).
 * REPLY-SUBJECT-2  A request with another reply subject is not executed.
 */
export function mayAnswerTo(reply: string): boolean {
  return /^(_INBOX|_R_)\../.test(reply);
}

export const REPLY_HINT = 'use a reply subject below _INBOX., as client libraries do';
