import { type Candidate, isHelpedByKey, isHelpedElsewhere, type Turn } from '../../conversation/index.ts';
import type { Model } from '../model-port.ts';
import type { ModelProfile } from '../requests/assemble.ts';

/**
 * Who may answer the model calls of a turn: each key of the agent's model, then each key of each fallback.
 *
 * CANDIDATES-1 A turn begins with the first. A failed attempt moves it to a later one, for the rest of the turn; never back.
 * CANDIDATES-2 The move is durable (`attempt-failed`) before the next candidate is called.
 * CANDIDATES-3 Nothing of an answer was shown, and the failure is of a kind that another candidate may not have
 *              (`model-failure.ts`).
 */
export interface ModelCandidate extends Candidate {
  readonly client: Model;
}

interface Choosable {
  readonly profile: Pick<ModelProfile, 'name'>;
  readonly model: Model;
  readonly fallbacks?: readonly Choosable[];
}

/** The candidate that the turn asks now, and those after it. */
export function candidatesFor(
  own: Choosable,
  { candidate }: Pick<Turn, 'candidate'>,
): { readonly asked: ModelCandidate; readonly others: readonly ModelCandidate[] } {
  const all = [own, ...(own.fallbacks ?? [])].flatMap(withKeys);
  const ofModel = all.findIndex(({ model }) => model === candidate?.model);
  const exact = all.findIndex(({ model, key }) => model === candidate?.model && key === candidate.key);
  const at = Math.max(0, exact < 0 ? ofModel : exact); // a later configuration may lack the key, or the model
  return { asked: all[at] ?? { model: own.profile.name, client: own.model }, others: all.slice(at + 1) };
}

function withKeys({ profile: { name: model }, model: client }: Choosable): ModelCandidate[] {
  return client.keys?.map((one, at) => ({ model, key: at + 1, client: one })) ?? [{ model, client }];
}

/** Those of `others` that may answer where `failed` could not for this reason, in order (CANDIDATES-3). */
export function helping(
  code: string,
  failed: Candidate,
  others: readonly ModelCandidate[],
): readonly ModelCandidate[] {
  if (!isHelpedElsewhere(code)) return [];
  return isHelpedByKey(code) ? others : others.filter(({ model }) => model !== failed.model);
}
