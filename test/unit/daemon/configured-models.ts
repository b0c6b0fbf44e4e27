import type { Model } from '../../../src/agents/index.ts';
import { DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import type { ConfiguredModels } from '../../../src/daemon/team/team.ts';
import { PROFILE } from '../agents/support.ts';

/** Each with the profile of all agents here, but for its name. */
export function modelsOfTests(standard: Model, more: Readonly<Record<string, Model>> = {}): ConfiguredModels {
  const models = new Map(Object.entries({ default: standard, ...more }));
  return {
    names: [...models.keys()],
    get: (name) => models.get(name),
    changedTo: (name) => {
      const profile = { ...PROFILE, name, fields: { ...PROFILE.fields, model: name } };
      return models.has(name) ? { profile, viewPolicy: DEFAULT_VIEW_POLICY } : null;
    },
  };
}
