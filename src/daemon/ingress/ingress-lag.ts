import type { IngressLag } from '../../bus/index.ts';
import type { Clock } from '../../kernel/index.ts';

/** Asked of the broker at most so often, however many ask for it. */
const FRESH_MS = 1_000;

/** What the ingress stream has that is not in a log yet; null while nobody can say. Never rejects. */
export function createLagMeter(
  read: () => Promise<IngressLag | null>,
  elapsed: Clock,
): () => Promise<IngressLag | null> {
  let asked: { readonly at: number; readonly lag: Promise<IngressLag | null> } | null = null;
  return () => {
    if (asked === null || elapsed() - asked.at >= FRESH_MS)
      asked = { at: elapsed(), lag: read().catch(() => null) };
    return asked.lag;
  };
}
