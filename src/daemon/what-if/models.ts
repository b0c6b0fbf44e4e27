import type { ChangedModel, Model } from '../../agents/index.ts';
import { ParleyError, type Refusal, refusal } from '../../kernel/index.ts';

/** The configured models, for requests outside turns. */
export interface ConfiguredModels {
  /** The keys of `models`. */
  readonly names: readonly string[];
  get(name: string): Model | undefined;
  /** As this agent would send its requests to it, with the parameters of the agent; null: there is no such model. */
  changedTo(name: string, agent: string): ChangedModel | null;
}

export function unknownModel(name: string, names: readonly string[]): Refusal {
  return refusal('UNKNOWN_MODEL', `there is no model ${name}`, `configured models: ${names.join(', ')}`);
}

export function noDefinition(agent: string): ParleyError {
  return new ParleyError('NO_DEFINITION', `the turn of ${agent} was recorded without a definition`, {
    hint: 'turns before definitions were stored, and imported answers, cannot be sent again; choose a later turn',
  });
}
