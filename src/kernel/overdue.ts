const OVERDUE_MS = 7 * 86_400_000;

/**
 * Whether something was due for more than a week. Where that is so for the newest that is due, the clock may have been set forward:
 * such a clock makes everything due.
 */
export function isOverdue(at: string, age: number, now: number): boolean {
  return now - Date.parse(at) > age + OVERDUE_MS;
}
